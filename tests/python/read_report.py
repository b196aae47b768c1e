"""Reads test reports as servers do: JUnit XML with junitparser, TAP with tap.py, KCIDB with its
own schema."""

import json
import sys

from junitparser import JUnitXml
from kcidb_io.schema import LATEST
from tap.parser import Parser


def outcome(case):
    if not case.result:
        return "passed"
    return type(case.result[0]).__name__.lower()


def point(line):
    return "skipped" if line.skip else "passed" if line.ok else "failed"


junit, tap, kcidb = sys.argv[1:]
suites = list(JUnitXml.fromfile(junit))
with open(kcidb, encoding="utf-8") as file:
    submitted = LATEST.upgrade(json.load(file))["tests"]
points = [line for line in Parser().parse_file(tap) if line.category == "test"]
print(
    json.dumps(
        {
            "suites": [
                {
                    "name": suite.name,
                    "run": [own.value for own in suite.properties() if own.name == "run"][0],
                    "tests": suite.tests,
                    "failures": suite.failures,
                    "errors": suite.errors,
                    "skipped": suite.skipped,
                    "cases": [[case.name, outcome(case)] for case in suite],
                }
                for suite in suites
            ],
            "submitted": [[test["path"], test["status"]] for test in submitted],
            "points": [[line.description, point(line)] for line in points],
        }
    )
)
