"""Reads a run directory with other people's readers and prints what they find, as JSON.

    read_run.py RUN

Nothing of tardy is in here: series.hlog is read by Python's hdrhistogram, samples/*.parquet by
pandas (with pyarrow) and by DuckDB. The tests compare what they say with run.json.
"""

import glob
import json
import sys

import duckdb
import pandas
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

PERCENTILES = ["50", "90", "99", "99.9", "99.99", "99.999"]
LOWEST_NS, HIGHEST_NS, DIGITS = 1, 3_600_000_000_000, 3


def from_log(path):
    """Per tag: samples and largest value over all intervals.

    Its percentiles are not compared: the library rounds the rank, where others round it up, and
    may so be one sample beside. Pandas below is exact.
    """
    totals = {}
    reader = HistogramLogReader(path, HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS))
    while (interval := reader.get_next_interval_histogram()) is not None:
        empty = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
        totals.setdefault(interval.get_tag(), empty).add(interval)
    reader.close()
    return {
        tag: {"count": total.get_total_count(), "max": total.get_max_value()}
        for tag, total in totals.items()
    }


def by_pandas(files):
    """Per series: rows, largest value and percentiles, none of them interpolated."""
    rows = pandas.concat([pandas.read_parquet(file) for file in files])
    found = {}
    for series, group in rows.groupby("series"):
        latency = group["latency_ns"]
        kept = latency[latency >= 0]
        found[series] = {
            "count": int(latency.size),
            "max": int(latency.max()),
            "distance_ns": int(group["t_ns"].sort_values().diff().min()),
            "percentiles": {
                p: int(kept.sort_values().iloc[rank(float(p), kept.size) - 1]) for p in PERCENTILES
            },
        }
    return found


def rank(percentile, count):
    """The smallest rank that has at least so many percent at or below it."""
    exact = percentile / 100 * count
    return min(count, max(1, int(exact) + (exact - int(exact) > 1e-9)))


def by_duckdb(directory):
    """Per series: rows and the largest value, by one query over all files."""
    query = """SELECT series, count(*), max(latency_ns) FROM read_parquet(?)
               GROUP BY series ORDER BY series"""
    rows = duckdb.execute(query, [f"{directory}/samples/*.parquet"]).fetchall()
    return {series: {"count": count, "max": largest} for series, count, largest in rows}


def main(directory):
    files = sorted(glob.glob(f"{directory}/samples/*.parquet"))
    found = {"log": from_log(f"{directory}/series.hlog"), "files": len(files)}
    if files:
        found["pandas"] = by_pandas(files)
        found["duckdb"] = by_duckdb(directory)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
