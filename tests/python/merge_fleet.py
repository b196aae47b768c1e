"""Merges exported histograms by deploy/sql/merge.sql and hosts.sql and compares with tardy's own merge.

Arguments: engine (duckdb, chdb, datafusion, spark), histogram-parquet, merged-csv, then names of machines of the
inventory. Prints as JSON how many rows were equal, how long the query took, who reported, and how
many rows had overlapping buckets once others were added. Fails where any row differs.
"""

import csv
import json
import pathlib
import sys
import time

engine, parquet, merged, *machines = sys.argv[1:]
SQL = pathlib.Path(__file__).parents[2] / "deploy/sql"
NAMES = ("merge.sql", "hosts.sql", "reported.sql", "fold.sql", "fold-fleet.sql")
merge, hosts, reported, fold, fold_fleet = ((SQL / name).read_text() for name in NAMES)
VIEW = "create or replace view "


def with_duckdb():
    import duckdb

    duckdb.sql(f"create view exported as from read_parquet('{parquet}')")
    duckdb.sql("create table machines(host varchar)")
    duckdb.executemany("insert into machines values (?)", [[host] for host in machines])

    def ask(query):
        found = duckdb.execute(query)
        return [column[0] for column in found.description], found.fetchall()

    return ask, lambda name, rows: duckdb.sql(f"{VIEW}{name} as {rows}")


def with_chdb():
    from chdb import session

    own = session.Session()
    own.query("create database fleet; ")
    own.query("use fleet")
    own.query(f"create view exported as select * from file('{parquet}', Parquet)")
    own.query("create table machines(host String) engine = Memory")
    for host in machines:
        own.query(f"insert into machines values ('{host}')")

    def ask(query):
        # An outer join fills with null, as the standard has it, and not with 0 and ''.
        found = str(own.query(query + " settings join_use_nulls = 1", "JSONCompact"))
        found = json.loads(found)
        return [column["name"] for column in found["meta"]], found["data"]

    return ask, lambda name, rows: own.query(f"{VIEW}{name} as {rows}")


def with_datafusion():
    from datafusion import SessionContext

    own = SessionContext()
    own.register_parquet("exported", parquet, file_extension="")
    own.sql("create table machines(host varchar)").collect()
    for host in machines:
        own.sql(f"insert into machines values ('{host}')").collect()

    def ask(query):
        found = own.sql(query)
        names = found.schema().names
        return names, [[row[name] for name in names] for row in found.to_pylist()]

    return ask, lambda name, rows: own.sql(f"{VIEW}{name} as {rows}").collect()


def with_spark():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8")
    spark = spark.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(parquet).createOrReplaceTempView("exported")
    rows = [(host,) for host in machines]
    spark.createDataFrame(rows, "host string").createOrReplaceTempView("machines")

    def ask(query):
        found = spark.sql(query)
        return found.columns, [list(row) for row in found.collect()]

    return ask, lambda name, rows: spark.sql(
        f"{VIEW.replace('view', 'temp view')}{name} as {rows}"
    )


def define(rows):
    view("histograms", rows)


def check_folds():
    """Halves that are folded, folded once more, or beside the other half merge as all runs do."""
    runs = sorted(row[0] for row in ask("select distinct run from exported")[1])
    second = runs[len(runs) // 2]
    view("part_0", f"select * from exported h where h.run < '{second}'")
    view("part_1", f"select * from exported h where h.run >= '{second}'")
    for part in (0, 1):
        view(f"fold_{part}", fold.replace("histograms h", f"part_{part} h"))
        view(f"fleet_{part}", fold_fleet.replace("histograms h", f"part_{part} h"))
    both = "select * from {} union all select * from {}"
    view("folds", both.format("fold_0", "fold_1"))
    view("again", fold.replace("histograms h", "folds h"))
    view("fleets", both.format("fleet_0", "fleet_1"))
    view("fleet_of_folds", fold_fleet.replace("histograms h", "again h"))
    for folded in ("folds", "again"):
        define(f"select * from {folded}")
        assert told(ask(merge)[1] + ask(hosts)[1]) == found, folded
    define(both.format("fold_0", "part_1"))
    assert told(ask(merge)[1] + ask(hosts)[1]) == found, "a fold beside runs"
    fleet = [row for row in found if row[0] == "fleet"]
    define("select * from fleet_of_folds")
    assert told(ask(merge)[1]) == fleet, "machines are added up"
    # Which machines are in both parts is not known.
    define("select * from fleets")
    at = columns.index("machines")
    for theirs, whole in zip(told(ask(merge)[1]), fleet):
        assert int(theirs[at]) <= int(whole[at]), f"{theirs} {whole}"
        assert theirs[:at] + theirs[at + 1 :] == whole[:at] + whole[at + 1 :], f"{theirs} {whole}"
    rows = [int(ask(f"select count(*) from {name}")[1][0][0]) for name in ("exported", "again")]
    # What is there twice stays so in a fold.
    view("doubled", both.format("fold_0", "fold_0"))
    view("fold_of_doubled", fold.replace("histograms h", "doubled h"))
    define("select * from fold_of_doubled")
    for row in (dict(zip(columns, values)) for values in ask(merge)[1]):
        assert int(row["repeated"]) > 0 and row["p50_ns"] is None, f"the same fold twice: {row}"
    return rows


def told(rows):
    return sorted([str(value) for value in row] for row in rows)


def overlaps(edges):
    """How many buckets begin before an earlier one ends."""
    highest, count = -1, 0
    for low, high in sorted(set(edges)):
        count += low > 0 and highest >= low
        highest = max(highest, high)
    return count


def check_overlaps():
    """The last run once more with buckets of 100 ns, whose edges lie across the others."""
    kind = ["kernel", "cpu_model", "verdict", "conditions_key", "series"]
    texts = "host, labels, probe, policy, priority, interval_ns, load, conditions, run"
    own = f"merge_key, machine, {', '.join(kind)}, {texts}, low_ns, high_ns, h.count as count"
    own += ", samples, early, above, min_ns, max_ns, bucket, machines, runs, repeated"
    coarse = own.replace("run, low_ns, high_ns", """concat(h.run, '-coarse') as run,
        low_ns - low_ns % 100 as low_ns, low_ns - low_ns % 100 + 99 as high_ns""")
    define(
        f"select {own} from exported h union all select {coarse} from exported h "
        f"where h.run in (select max(run) from exported)"
    )
    groups = {}
    edges = ask(f"select distinct machine, {', '.join(kind)}, low_ns, high_ns from histograms")[1]
    for machine, *alike, low, high in edges:
        for scope in (machine, ""):
            groups.setdefault((scope, *alike), []).append((int(low), int(high)))
    rows = 0
    for query in (merge, hosts):
        names, found = ask(query)
        for row in (dict(zip(names, values)) for values in found):
            expected = overlaps(groups.pop((row["machine"], *(row[name] for name in kind))))
            assert int(row["mixed"]) == expected, f"{expected} buckets overlap: {row}"
            assert (row["p50_ns"] is None) == (expected > 0), f"{row}"
            rows += expected > 0
    assert not groups, f"no rows of {groups.keys()}"
    return rows


engines = {"duckdb": with_duckdb, "chdb": with_chdb, "spark": with_spark}
engines["datafusion"] = with_datafusion
ask, view = engines[engine]()
define("select * from exported")
began = time.monotonic()
columns, found = ask(merge)
found += ask(hosts)[1]
took = time.monotonic() - began

found = told(found)
with open(merged, newline="") as file:
    head, *own = list(csv.reader(file))
assert columns == head + ["mixed", "repeated"], f"{columns} are not {head}"
own = sorted(row + ["0", "0"] for row in own)
assert len(found) == len(own), f"{len(found)} rows, and tardy has {len(own)}"
for theirs, ours in zip(found, own):
    assert theirs == ours, f"{theirs} is not {ours}"
names, [counts] = ask(reported)
counts = {name: int(value) for name, value in zip(names, counts)}
define("select * from exported union all select * from exported")
for query in (merge, hosts):
    for row in (dict(zip(columns, values)) for values in ask(query)[1]):
        assert int(row["repeated"]) > 0 and row["p50_ns"] is None, f"the same file twice: {row}"
rows_before, rows_folded = check_folds()
overlapping = check_overlaps()
own = {"rows": len(found), "seconds": round(took, 2), "overlapping": overlapping}
own |= {"rows_before": rows_before, "rows_folded": rows_folded}
print(json.dumps({**own, **counts}))
