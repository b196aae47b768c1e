-- How many machines reported, of all that should have: those that did not are in the denominator.
-- Needs `histograms` as merge.sql does, and a table or view `machines` with a column `host`, one row
-- for each machine of the inventory, by the name that `hostname` prints there; if two machines have
-- one name, by the id in the column `machine`. A machine reports if it has a row; it is of no use if
-- none of its rows is of a run that is valid or weakened.
with told as (
    select name, max(is_usable) as usable
    from (
        select h.host as name, case when h.verdict = 'invalid' then 0 else 1 end as is_usable
        from histograms h
        where h.bucket = 0
        union all
        select h.machine as name, case when h.verdict = 'invalid' then 0 else 1 end as is_usable
        from histograms h
        where h.bucket = 0
    ) n
    group by name
),
asked as (
    select m.host as host,
        case when t.usable is null then 0 when t.name = '' then 0 else 1 end as reported,
        case when t.usable is null then 0 when t.name = '' then 0 else t.usable end as usable
    from (select distinct host from machines) m
    left join told t on m.host = t.name
)
select cast(count(*) as bigint) as machines, cast(sum(a.reported) as bigint) as reported,
    cast(sum(a.usable) as bigint) as usable, cast(count(*) - sum(a.reported) as bigint) as silent
from asked a
