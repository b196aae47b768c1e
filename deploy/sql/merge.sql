-- Merges histograms of any number of machines and runs, exactly. One text for DuckDB, ClickHouse and
-- Spark; `tardy export --to merged-csv` computes the same rows from the runs themselves.
--
-- Needs a table or view `histograms` with the rows of `tardy export --to histogram-parquet`.
-- A row each for every machine (scope 'host') and for all together (scope 'fleet'), by kernel, CPU
-- model, verdict, probe, load and series. Percentiles are those of samples within the histogram:
-- the smallest bucket whose cumulated count reaches ceil(p N), at most the largest latency. Products
-- of decimals are compared, because quotients would be rounded. `mixed` counts buckets that overlap
-- others: where it is not 0, runs had different edges, and there are no percentiles.
with scoped as (
    select 'host' as scope, host as machine, h.*
    from histograms h
    union all
    select 'fleet' as scope, '' as machine, h.*
    from histograms h
),
-- What each row of a series repeats, once.
once as (
    select scope, machine, host, run, kernel, cpu_model, verdict, probe, load, series,
        max(samples) as samples, max(early) as early, max(above) as above,
        min(min_ns) as min_ns, max(max_ns) as max_ns
    from scoped
    group by scope, machine, host, run, kernel, cpu_model, verdict, probe, load, series
),
totals as (
    select scope, machine, kernel, cpu_model, verdict, probe, load, series,
        count(distinct host) as hosts, count(distinct run) as runs,
        sum(o.samples) as samples, sum(o.early) as early, sum(o.above) as above,
        min(o.min_ns) as lowest_ns, max(o.max_ns) as largest_ns
    from once o
    group by scope, machine, kernel, cpu_model, verdict, probe, load, series
),
buckets as (
    select scope, machine, kernel, cpu_model, verdict, probe, load, series, low_ns, high_ns,
        cast(sum(s.count) as decimal(20, 0)) as in_bucket
    from scoped s
    group by scope, machine, kernel, cpu_model, verdict, probe, load, series, low_ns, high_ns
),
cumulated as (
    select scope, machine, kernel, cpu_model, verdict, probe, load, series, low_ns, high_ns,
        cast(sum(in_bucket) over (
            partition by scope, machine, kernel, cpu_model, verdict, probe, load, series
            order by low_ns, high_ns rows between unbounded preceding and current row
        ) as decimal(20, 0)) as passed,
        cast(sum(in_bucket) over (
            partition by scope, machine, kernel, cpu_model, verdict, probe, load, series
        ) as decimal(20, 0)) as counted,
        coalesce(max(high_ns) over (
            partition by scope, machine, kernel, cpu_model, verdict, probe, load, series
            order by low_ns, high_ns rows between unbounded preceding and 1 preceding
        ), -1) as below_ns
    from buckets
),
ranks as (
    select scope, machine, kernel, cpu_model, verdict, probe, load, series,
        max(c.counted) as in_all,
        sum(case when low_ns > 0 and below_ns >= low_ns then 1 else 0 end) as mixed,
        min(case when passed * 100000 >= counted * 50000 then high_ns end) as p50,
        min(case when passed * 100000 >= counted * 90000 then high_ns end) as p90,
        min(case when passed * 100000 >= counted * 99000 then high_ns end) as p99,
        min(case when passed * 100000 >= counted * 99900 then high_ns end) as p99_9,
        min(case when passed * 100000 >= counted * 99990 then high_ns end) as p99_99,
        min(case when passed * 100000 >= counted * 99999 then high_ns end) as p99_999
    from cumulated c
    group by scope, machine, kernel, cpu_model, verdict, probe, load, series
)
select t.scope as scope, t.machine as host, t.kernel as kernel, t.cpu_model as cpu_model,
    t.verdict as verdict, t.probe as probe, t.load as load, t.series as series,
    cast(t.hosts as bigint) as hosts, cast(t.runs as bigint) as runs,
    cast(t.samples as bigint) as samples, cast(t.early as bigint) as early,
    cast(t.above as bigint) as above, cast(r.in_all as bigint) as counted,
    case when r.mixed = 0 then least(r.p50, t.largest_ns) end as p50_ns,
    case when r.mixed = 0 then least(r.p90, t.largest_ns) end as p90_ns,
    case when r.mixed = 0 then least(r.p99, t.largest_ns) end as p99_ns,
    case when r.mixed = 0 then least(r.p99_9, t.largest_ns) end as p99_9_ns,
    case when r.mixed = 0 then least(r.p99_99, t.largest_ns) end as p99_99_ns,
    case when r.mixed = 0 then least(r.p99_999, t.largest_ns) end as p99_999_ns,
    t.lowest_ns as min_ns, t.largest_ns as max_ns, cast(r.mixed as bigint) as mixed
from totals t
join ranks r
    on t.scope = r.scope and t.machine = r.machine and t.kernel = r.kernel
    and t.cpu_model = r.cpu_model and t.verdict = r.verdict and t.probe = r.probe
    and t.load = r.load and t.series = r.series
