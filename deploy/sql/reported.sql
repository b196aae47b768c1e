-- How many machines reported, of all that should have: those that did not are in the denominator.
-- Needs `histograms` as merge.sql does, and a table or view `machines` with a column `host`, one row
-- for each machine of the inventory, by the name that `hostname` prints there. A machine reports
-- where it has a row; it is of no use where none of its rows is of a run that is valid or weakened.
with told as (
    select host, max(case when verdict = 'invalid' then 0 else 1 end) as usable
    from histograms
    where bucket = 0
    group by host
),
asked as (
    select m.host as host,
        case when t.usable is null then 0 when t.host = '' then 0 else 1 end as reported,
        case when t.usable is null then 0 when t.host = '' then 0 else t.usable end as usable
    from (select distinct host from machines) m
    left join told t on m.host = t.host
)
select cast(count(*) as bigint) as machines, cast(sum(a.reported) as bigint) as reported,
    cast(sum(a.usable) as bigint) as usable, cast(count(*) - sum(a.reported) as bigint) as silent
from asked a
