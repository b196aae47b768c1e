"""Merges exported histograms by deploy/sql/merge.sql and compares with tardy's own merge.

Arguments: engine (duckdb, chdb, spark), histogram-parquet, merged-csv, then names of machines of the
inventory. Prints as JSON how many rows were equal, how long the query took and who reported. Fails
where any row differs.
"""

import csv
import json
import pathlib
import sys
import time

engine, parquet, merged, *machines = sys.argv[1:]
SQL = pathlib.Path(__file__).parents[2] / "deploy/sql"
merge, reported = ((SQL / name).read_text() for name in ("merge.sql", "reported.sql"))


def with_duckdb():
    import duckdb

    duckdb.sql(f"create view histograms as from read_parquet('{parquet}')")
    duckdb.sql("create table machines(host varchar)")
    duckdb.executemany("insert into machines values (?)", [[host] for host in machines])

    def ask(query):
        found = duckdb.execute(query)
        return [column[0] for column in found.description], found.fetchall()

    return ask


def with_chdb():
    from chdb import session

    own = session.Session()
    own.query("create database fleet; ")
    own.query("use fleet")
    own.query(f"create view histograms as select * from file('{parquet}', Parquet)")
    own.query("create table machines(host String) engine = Memory")
    for host in machines:
        own.query(f"insert into machines values ('{host}')")

    def ask(query):
        # An outer join fills with null, as the standard has it, and not with 0 and ''.
        found = str(own.query(query + " settings join_use_nulls = 1", "JSONCompact"))
        found = json.loads(found)
        return [column["name"] for column in found["meta"]], found["data"]

    return ask


def with_spark():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "8")
    spark = spark.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(parquet).createOrReplaceTempView("histograms")
    rows = [(host,) for host in machines]
    spark.createDataFrame(rows, "host string").createOrReplaceTempView("machines")

    def ask(query):
        found = spark.sql(query)
        return found.columns, [list(row) for row in found.collect()]

    return ask


ask = {"duckdb": with_duckdb, "chdb": with_chdb, "spark": with_spark}[engine]()
began = time.monotonic()
columns, found = ask(merge)
took = time.monotonic() - began

found = sorted([str(value) for value in row] for row in found)
with open(merged, newline="") as file:
    head, *own = list(csv.reader(file))
assert columns == head + ["mixed"], f"{columns} are not {head}"
own = sorted(row + ["0"] for row in own)
assert len(found) == len(own), f"{len(found)} rows, and tardy has {len(own)}"
for theirs, ours in zip(found, own):
    assert theirs == ours, f"{theirs} is not {ours}"
names, [counts] = ask(reported)
counts = {name: int(value) for name, value in zip(names, counts)}
print(json.dumps({"rows": len(found), "seconds": round(took, 2), **counts}))
