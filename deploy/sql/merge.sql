-- Merges histograms of any number of machines and runs, exactly. One text for DuckDB, ClickHouse and
-- Spark; `tardy export --to merged-csv` computes the same rows from the runs themselves, and those of
-- hosts.sql, which keeps machines apart.
--
-- Needs a table or view `histograms` with the rows of `tardy export --to histogram-parquet`, or with
-- rows that fold.sql or fold-fleet.sql made of them, or both.
-- A row each for runs of one kernel, CPU model and verdict under equal conditions, and each series;
-- `merge_key` stands for these. Machines are pooled, whatever their labels are.
-- Percentiles are those of samples within the histogram: the smallest bucket whose cumulated count
-- reaches ceil(p N), at most the largest latency. Products of decimals are compared, because
-- quotients would be rounded. There are no percentiles where `mixed` is not 0, which counts buckets
-- that overlap others, as runs had different edges, or `repeated`, which counts histograms that are
-- there twice.
with totals as (
    -- What each row of a histogram repeats, once. `merge_key` stands for its texts.
    select merge_key,
        min(h.kernel) as kernel, min(h.cpu_model) as cpu_model, min(h.verdict) as verdict,
        min(h.probe) as probe, min(h.policy) as policy, min(h.priority) as priority,
        min(h.interval_ns) as interval_ns, min(h.load) as load, min(h.conditions) as conditions,
        min(h.conditions_key) as conditions_key, min(h.series) as series,
        greatest(count(distinct h.machine), max(h.machines)) as machines, sum(h.runs) as runs,
        count(*) - count(distinct concat(h.machine, '/', h.run)) + sum(h.repeated) as repeated,
        sum(h.samples) as samples, sum(h.early) as early, sum(h.above) as above,
        min(h.min_ns) as lowest_ns, max(h.max_ns) as largest_ns
    from histograms h
    where bucket = 0
    group by merge_key
),
buckets as (
    select merge_key, low_ns, high_ns, cast(sum(h.count) as decimal(20, 0)) as in_bucket
    from histograms h
    group by merge_key, low_ns, high_ns
),
cumulated as (
    select merge_key, low_ns, high_ns,
        cast(sum(in_bucket) over (
            partition by merge_key order by low_ns, high_ns
            rows between unbounded preceding and current row
        ) as decimal(20, 0)) as passed,
        cast(sum(in_bucket) over (partition by merge_key) as decimal(20, 0)) as counted,
        coalesce(max(high_ns) over (
            partition by merge_key order by low_ns, high_ns
            rows between unbounded preceding and 1 preceding
        ), -1) as below_ns
    from buckets
),
ranks as (
    select merge_key,
        max(c.counted) as in_all,
        sum(case when low_ns > 0 and below_ns >= low_ns then 1 else 0 end) as mixed,
        min(case when passed * 100000 >= counted * 50000 then high_ns end) as p50,
        min(case when passed * 100000 >= counted * 90000 then high_ns end) as p90,
        min(case when passed * 100000 >= counted * 99000 then high_ns end) as p99,
        min(case when passed * 100000 >= counted * 99900 then high_ns end) as p99_9,
        min(case when passed * 100000 >= counted * 99990 then high_ns end) as p99_99,
        min(case when passed * 100000 >= counted * 99999 then high_ns end) as p99_999
    from cumulated c
    group by merge_key
)
select 'fleet' as scope, '' as host, '' as machine, '' as labels,
    t.kernel as kernel, t.cpu_model as cpu_model,
    t.verdict as verdict, t.probe as probe, t.policy as policy, t.priority as priority,
    t.interval_ns as interval_ns, t.load as load, t.conditions as conditions,
    t.conditions_key as conditions_key, t.series as series,
    cast(t.machines as bigint) as machines, cast(t.runs as bigint) as runs,
    cast(t.samples as bigint) as samples, cast(t.early as bigint) as early,
    cast(t.above as bigint) as above, cast(r.in_all as bigint) as counted,
    case when r.mixed + t.repeated = 0 then least(r.p50, t.largest_ns) end as p50_ns,
    case when r.mixed + t.repeated = 0 then least(r.p90, t.largest_ns) end as p90_ns,
    case when r.mixed + t.repeated = 0 then least(r.p99, t.largest_ns) end as p99_ns,
    case when r.mixed + t.repeated = 0 then least(r.p99_9, t.largest_ns) end as p99_9_ns,
    case when r.mixed + t.repeated = 0 then least(r.p99_99, t.largest_ns) end as p99_99_ns,
    case when r.mixed + t.repeated = 0 then least(r.p99_999, t.largest_ns) end as p99_999_ns,
    t.lowest_ns as min_ns, t.largest_ns as max_ns, cast(r.mixed as bigint) as mixed,
    cast(t.repeated as bigint) as repeated
from totals t
join ranks r on t.merge_key = r.merge_key
