"""Reads what `tardy export` wrote, as users do, and prints what it found as JSON.

Arguments: histogram-parquet, samples parquet, histogram-csv, hgrm, prometheus.
"""

import json
import sys

import duckdb
import pandas

histograms, samples, rows, hgrm, prometheus = sys.argv[1:]

merged = duckdb.sql(
    f"select run, series, sum(count)::bigint, max(high_ns) from read_parquet('{histograms}') group by 1, 2"
).fetchall()
single = pandas.read_parquet(samples)
table = pandas.read_csv(rows)
points = [line.split() for line in open(hgrm) if line[:1] == " " and "Value" not in line]
counts = {}
for line in open(prometheus):
    if line.startswith("tardy_latency_seconds_count"):
        series = line.split('series="')[1].split('"')[0]
        counts[series] = float(line.rsplit(" ", 1)[1])

print(
    json.dumps(
        {
            "duckdb": {series: [count, high] for _, series, count, high in merged},
            "pandas": single.groupby("series").size().to_dict(),
            "csv": table.groupby("series")["count"].sum().to_dict(),
            "hgrm": int([point for point in points if point][-1][2]),
            "prometheus": counts,
        }
    )
)
