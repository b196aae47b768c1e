-- Adds up the machines, too: as fold.sql, with one histogram for all of them. For merge.sql alone.
--
-- `machines` counts them. Nobody can tell from two such parts which machines are in both, so that of
-- two or more parts merge.sql counts those of the largest one: at least so many there are.
with totals as (
    select merge_key,
        min(concat(h.machine, '/', h.run)) as first_run,
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
    group by merge_key
),
buckets as (
    select merge_key, low_ns, high_ns, sum(h.count) as in_bucket
    from histograms h
    group by merge_key, low_ns, high_ns
)
select '' as host, t.kernel as kernel, t.first_run as run, t.series as series,
    b.low_ns as low_ns, b.high_ns as high_ns, cast(b.in_bucket as bigint) as count,
    t.verdict as verdict, t.cpu_model as cpu_model, t.probe as probe, t.load as load,
    t.began_ns as started_ns, t.longest_ns as duration_ns,
    cast(t.samples as bigint) as samples, cast(t.early as bigint) as early,
    cast(t.above as bigint) as above, t.lowest_ns as min_ns, t.largest_ns as max_ns,
    t.merge_key as merge_key,
    cast(row_number() over (
        partition by b.merge_key order by b.low_ns, b.high_ns
    ) - 1 as bigint) as bucket,
    '' as machine, '' as labels, t.policy as policy, t.priority as priority,
    t.interval_ns as interval_ns, t.conditions as conditions, t.conditions_key as conditions_key,
    cast(t.machines as bigint) as machines, cast(t.runs as bigint) as runs,
    cast(t.repeated as bigint) as repeated
from totals t
join buckets b on t.merge_key = b.merge_key
