"""Merges a made-up fleet by deploy/sql under a limit of memory, at once and night by night.

Arguments: an empty directory, machines, nights, kinds of histograms, buckets of each, and DuckDB's
memory limit in MB. Writes rows as `tardy export --to histogram-parquet` does into
day=DAY/shard=XX/, folds each night by fold.sql and fold-fleet.sql, and asks merge.sql and hosts.sql
of the rows, and of what was folded. Fails if any row differs. Prints as JSON the bytes of each step,
and seconds, spilled bytes and largest resident memory of each query. Each query has its own process,
so that each has its own figures.
"""

import json
import multiprocessing
import pathlib
import resource
import sys
import time

import duckdb

place = pathlib.Path(sys.argv[1])
machines, nights, kinds, buckets, limit_mb = map(int, sys.argv[2:])
SQL = pathlib.Path(__file__).parents[2] / "deploy/sql"
SHARDS = 4

# A machine's buckets lie around its own level, and two nights share most of them.
ROWS = """
select 'host-' || m as host, '6.1' as kernel, 'run-' || {day} || '-' || m || '-' || k as run,
    'cpu' || k as series, (1000 + b * 8 + (m % 7) * 400)::bigint as low_ns,
    (1007 + b * 8 + (m % 7) * 400)::bigint as high_ns,
    (1 + hash(m * 1000003 + k * 1009 + b * 31 + {day}) % 1000)::bigint as count,
    'valid' as verdict, 'cpu' as cpu_model, 'timer' as probe, 'idle' as load,
    ({day} * 86400000000000)::bigint as started_ns, 60000000000::bigint as duration_ns,
    sum(count) over each as samples, 0::bigint as early, 0::bigint as above,
    min(low_ns) over each as min_ns, max(high_ns) over each as max_ns, k::bigint as merge_key,
    (row_number() over (each order by b) - 1)::bigint as bucket,
    printf('%016x', hash(m)) as machine, '' as labels, 'fifo' as policy, 90::bigint as priority,
    1000000::bigint as interval_ns, 'CPUs=0' as conditions, printf('%016x', k) as conditions_key,
    1::bigint as machines, 1::bigint as runs, 0::bigint as repeated
from range({first}, {last}) machine(m), range({kinds}) kind(k), range({buckets}) bucket(b)
window each as (partition by m, k)
"""


def query(view, sql, out):
    """In a process of its own: the rows of a query into a file."""
    temporary = place / "temporary"
    own = duckdb.connect()
    own.execute(f"set memory_limit = '{limit_mb}MB'; set threads = 2")
    own.execute("set enable_progress_bar = false")
    own.execute(f"set temp_directory = '{temporary}'; set preserve_insertion_order = false")
    own.execute(f"create view histograms as {view}")
    own.execute("pragma enable_profiling = 'no_output'")
    began = time.monotonic()
    own.execute(f"copy ({sql}) to '{out}' (format parquet, compression zstd)")
    took = time.monotonic() - began
    profile = json.loads(own.get_profiling_information(format="json"))
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    written = profile["io"]["total_bytes_written"] - pathlib.Path(out).stat().st_size
    return {"s": round(took, 1), "rss_mb": rss_mb, "spilled_mb": written >> 20}


POOL = multiprocessing.get_context("spawn")


def asked(view, sql, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    with POOL.Pool(1) as one:
        return one.apply(query, (view, sql, str(out)))


def size(directory):
    return sum(file.stat().st_size for file in (place / directory).rglob("*.parquet"))


def rows(directory):
    return f"select * from read_parquet('{place / directory}/**/*.parquet', hive_partitioning = false)"


def worst(figures):
    names = ("rss_mb", "spilled_mb")
    total = round(sum(own["s"] for own in figures), 1)
    return {"s": total, **{name: max(own[name] for own in figures) for name in names}}


def same(one, other, without=()):
    left = f"select * exclude ({', '.join(without)}) from" if without else "from"
    pair = [f"{left} read_parquet('{place / path}')" for path in (one, other)]
    for first, second in (pair, pair[::-1]):
        counted = f"select count(*) from ({first} except all {second})"
        differing = duckdb.execute(counted).fetchall()[0][0]
        assert differing == 0, f"{differing} rows of {one} and {other} differ"


def main():
    text = {name: (SQL / f"{name}.sql").read_text() for name in NAMES}
    step = -(-machines // SHARDS)
    figures = {}
    for day in range(nights):
        for shard in range(SHARDS):
            own = f"day={day}/shard={shard:02x}"
            (place / "rows" / own).mkdir(parents=True)
            first, last = shard * step, min((shard + 1) * step, machines)
            made = ROWS.format(day=day, first=first, last=last, kinds=kinds, buckets=buckets)
            asked("select 1", made, place / "rows" / own / "x.parquet")
    folded, fleets = [], []
    for day in range(nights):
        for shard in range(SHARDS):
            own = f"day={day}/shard={shard:02x}"
            folded.append(asked(rows(f"rows/{own}"), text["fold"], place / "folds" / own / "x.parquet"))
        out = place / f"fleets/day={day}/x.parquet"
        fleets.append(asked(rows(f"folds/day={day}"), text["fold-fleet"], out))
    figures["fold.sql, a shard and night"] = worst(folded)
    figures["fold-fleet.sql, a night"] = worst(fleets)
    figures["merge.sql, all rows"] = asked(rows("rows"), text["merge"], place / "out/whole.parquet")
    figures["merge.sql, all folds of nights"] = asked(
        rows("fleets"), text["merge"], place / "out/nights.parquet"
    )
    # Every machine is there every night, so that the largest night has all of them.
    same("out/whole.parquet", "out/nights.parquet")
    figures["hosts.sql, all rows"] = asked(rows("rows"), text["hosts"], place / "out/hosts.parquet")
    shards = []
    for shard in range(SHARDS):
        view = rows("folds").replace("**", f"*/shard={shard:02x}")
        shards.append(asked(view, text["hosts"], place / f"out/shard/{shard}.parquet"))
    figures["hosts.sql, a shard and all nights"] = worst(shards)
    same("out/hosts.parquet", "out/shard/*.parquet")
    sizes = {name: size(name) for name in ("rows", "folds", "fleets")}
    count = machines * nights * kinds * buckets
    print(json.dumps({"rows": count, "bytes": sizes, "queries": figures}))


NAMES = ("merge", "hosts", "fold", "fold-fleet")
if __name__ == "__main__":
    main()
