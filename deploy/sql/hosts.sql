-- Percentiles of every machine by itself: the rows of merge.sql, by machine.
--
-- To put every bucket of every machine in order takes long. So counts are added up over parts of
-- the axis first, which tells in which part a percentile lies, and only buckets of those parts are
-- put in order, on top of what lies before them. A part is the eighth root of the lowest value:
-- square roots are rounded the same way everywhere, so that a larger value is in no earlier part,
-- which cannot be said of logarithms. Whether buckets overlap is asked of all machines together,
-- and of each one only where the answer is yes: without an overlap of all there is none of one.
with totals as (
    -- What each row of a histogram repeats, once. `merge_key` stands for its texts.
    select merge_key, machine,
        min(h.host) as host, max(h.labels) as labels,
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
    group by merge_key, machine
),
parts as (
    select merge_key, machine, cast(floor(sqrt(sqrt(sqrt(low_ns))) * 128) as bigint) as part,
        cast(sum(h.count) as decimal(20, 0)) as in_part
    from histograms h
    group by merge_key, machine, part
),
parts_passed as (
    select merge_key, machine, part, in_part,
        cast(sum(in_part) over (
            partition by merge_key, machine order by part
            rows between unbounded preceding and current row
        ) as decimal(20, 0)) as passed,
        cast(sum(in_part) over (partition by merge_key, machine) as decimal(20, 0)) as counted
    from parts
),
wanted as (
    -- The parts in which a percentile lies.
    select merge_key, machine, part, passed - in_part as before, counted
    from parts_passed
    where (passed * 100000 >= counted * 50000 and (passed - in_part) * 100000 < counted * 50000)
        or (passed * 100000 >= counted * 90000 and (passed - in_part) * 100000 < counted * 90000)
        or (passed * 100000 >= counted * 99000 and (passed - in_part) * 100000 < counted * 99000)
        or (passed * 100000 >= counted * 99900 and (passed - in_part) * 100000 < counted * 99900)
        or (passed * 100000 >= counted * 99990 and (passed - in_part) * 100000 < counted * 99990)
        or (passed * 100000 >= counted * 99999 and (passed - in_part) * 100000 < counted * 99999)
),
buckets as (
    select h.merge_key as merge_key, h.machine as machine, w.part as part, h.low_ns as low_ns,
        h.high_ns as high_ns, w.before as before, w.counted as counted,
        cast(sum(h.count) as decimal(20, 0)) as in_bucket
    from histograms h
    join wanted w on h.merge_key = w.merge_key and h.machine = w.machine
        and cast(floor(sqrt(sqrt(sqrt(h.low_ns))) * 128) as bigint) = w.part
    group by h.merge_key, h.machine, w.part, h.low_ns, h.high_ns, w.before, w.counted
),
cumulated as (
    select merge_key, machine, high_ns, counted,
        before + cast(sum(in_bucket) over (
            partition by merge_key, machine, part order by low_ns, high_ns
            rows between unbounded preceding and current row
        ) as decimal(20, 0)) as passed
    from buckets
),
reached as (
    select merge_key, machine,
        max(c.counted) as in_all,
        min(case when passed * 100000 >= counted * 50000 then high_ns end) as p50,
        min(case when passed * 100000 >= counted * 90000 then high_ns end) as p90,
        min(case when passed * 100000 >= counted * 99000 then high_ns end) as p99,
        min(case when passed * 100000 >= counted * 99900 then high_ns end) as p99_9,
        min(case when passed * 100000 >= counted * 99990 then high_ns end) as p99_99,
        min(case when passed * 100000 >= counted * 99999 then high_ns end) as p99_999
    from cumulated c
    group by merge_key, machine
),
edges as (
    select merge_key, low_ns, high_ns
    from histograms h
    group by merge_key, low_ns, high_ns
),
neighbours as (
    select merge_key, low_ns, coalesce(max(high_ns) over (
            partition by merge_key order by low_ns, high_ns
            rows between unbounded preceding and 1 preceding
        ), -1) as below_ns
    from edges
),
suspects as (
    select merge_key
    from neighbours
    where low_ns > 0 and below_ns >= low_ns
    group by merge_key
),
own_edges as (
    select h.merge_key as merge_key, h.machine as machine, h.low_ns as low_ns, h.high_ns as high_ns
    from histograms h
    join suspects s on h.merge_key = s.merge_key
    group by h.merge_key, h.machine, h.low_ns, h.high_ns
),
own_neighbours as (
    select merge_key, machine, low_ns, coalesce(max(high_ns) over (
            partition by merge_key, machine order by low_ns, high_ns
            rows between unbounded preceding and 1 preceding
        ), -1) as below_ns
    from own_edges
),
mixtures as (
    select merge_key, machine, count(*) as mixed
    from own_neighbours
    where low_ns > 0 and below_ns >= low_ns
    group by merge_key, machine
),
ranks as (
    select c.merge_key as merge_key, c.machine as machine, c.in_all as in_all,
        coalesce(m.mixed, 0) as mixed, c.p50 as p50, c.p90 as p90, c.p99 as p99,
        c.p99_9 as p99_9, c.p99_99 as p99_99, c.p99_999 as p99_999
    from reached c
    left join mixtures m on c.merge_key = m.merge_key and c.machine = m.machine
)
select 'host' as scope, t.host as host, t.machine as machine, t.labels as labels,
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
join ranks r on t.merge_key = r.merge_key and t.machine = r.machine
