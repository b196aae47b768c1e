-- Adds up the runs of each machine: fewer rows with the same columns, which take the place of those
-- that they were made of. merge.sql and hosts.sql give the same of them, and they can be folded
-- again: those of the nights of a month, say. Each run may be in one part only.
--
-- Needs `histograms` as merge.sql does. `run` is the id of the first run, `runs` counts all of them,
-- `started_ns` is the first start, `duration_ns` the longest run. `repeated` is kept, so that a
-- histogram that was there twice still prevents percentiles.
with totals as (
    select merge_key, machine, min(h.host) as host, max(h.labels) as labels,
        min(h.run) as first_run,
        min(h.kernel) as kernel, min(h.cpu_model) as cpu_model, min(h.verdict) as verdict,
        min(h.probe) as probe, min(h.policy) as policy, min(h.priority) as priority,
        min(h.interval_ns) as interval_ns, min(h.load) as load, min(h.conditions) as conditions,
        min(h.conditions_key) as conditions_key, min(h.series) as series,
        min(h.started_ns) as began_ns, max(h.duration_ns) as longest_ns,
        greatest(count(distinct h.machine), max(h.machines)) as machines, sum(h.runs) as runs,
        count(*) - count(distinct concat(h.machine, '/', h.run)) + sum(h.repeated) as repeated,
        sum(h.samples) as samples, sum(h.early) as early, sum(h.above) as above,
        min(h.min_ns) as lowest_ns, max(h.max_ns) as largest_ns
    from histograms h
    where bucket = 0
    group by merge_key, machine
),
buckets as (
    select merge_key, machine, low_ns, high_ns, sum(h.count) as in_bucket
    from histograms h
    group by merge_key, machine, low_ns, high_ns
)
select t.host as host, t.kernel as kernel, t.first_run as run, t.series as series,
    b.low_ns as low_ns, b.high_ns as high_ns, cast(b.in_bucket as bigint) as count,
    t.verdict as verdict, t.cpu_model as cpu_model, t.probe as probe, t.load as load,
    t.began_ns as started_ns, t.longest_ns as duration_ns,
    cast(t.samples as bigint) as samples, cast(t.early as bigint) as early,
    cast(t.above as bigint) as above, t.lowest_ns as min_ns, t.largest_ns as max_ns,
    t.merge_key as merge_key,
    cast(row_number() over (
        partition by b.merge_key, b.machine order by b.low_ns, b.high_ns
    ) - 1 as bigint) as bucket,
    t.machine as machine, t.labels as labels, t.policy as policy, t.priority as priority,
    t.interval_ns as interval_ns, t.conditions as conditions, t.conditions_key as conditions_key,
    cast(t.machines as bigint) as machines, cast(t.runs as bigint) as runs,
    cast(t.repeated as bigint) as repeated
from totals t
join buckets b on t.merge_key = b.merge_key and t.machine = b.machine
