"""Has a real node_exporter read exported metrics, and a real Prometheus scrape it with the rules of
deploy/prometheus; asks the queries of the dashboard, and lets the next night follow.

Arguments: directory of the programs, metrics of a night, metrics of the next night. Prints as JSON
what Prometheus has. All traffic is on loopback, and both programs end with this one.
"""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

programs, night, next_night = map(pathlib.Path, sys.argv[1:])
DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
PATIENCE_S = 120


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def running(*words):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def eventually(what, asked):
    began = time.monotonic()
    while not (found := asked()):
        assert time.monotonic() - began < PATIENCE_S, f"never: {what}"
        time.sleep(0.2)
    return found


def get(path, **words):
    url = f"http://127.0.0.1:{prometheus_port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{words}: {error.read()}") from error
    except OSError:
        return None


def ask(query):
    found = get("query", query=query)
    return found and found["result"]


def identities():
    """Time series of runs that were ever there; a new one each night would be one too many."""
    found = get("series", **{"match[]": '{__name__=~"tardy_.+",tardy_machine!=""}'}) or []
    return {tuple(sorted(one.items())) for one in found}


def rules():
    found = [rule for group in get("rules")["groups"] for rule in group["rules"]]
    assert found, "no rules"
    return found


def queries():
    """Those of the dashboard, with all of its variables."""
    dashboard = json.loads((DEPLOY / "grafana/tardy-fleet.json").read_text())
    variables = dashboard["templating"]["list"]
    everything = {own["name"]: own["allValue"] for own in variables if own.get("includeAll")}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for name, value in everything.items():
                query = query.replace(f"${name}", value)
            yield panel["title"], query


node_port, prometheus_port = free_port(), free_port()
with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
    place = pathlib.Path(place)
    textfiles = place / "textfiles"
    textfiles.mkdir()
    shutil.copy(night, textfiles / "tardy.prom")
    # A target's label that is called as the machine is, and a machine without a run: Prometheus.
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(DEPLOY / "prometheus/*.rules.yml")],
        "scrape_configs": [
            {
                "job_name": "node",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{node_port}"], "labels": {"host": "of-the-target"}},
                    {"targets": [f"127.0.0.1:{prometheus_port}"]},
                ],
            }
        ],
    }
    (place / "prometheus.yml").write_text(json.dumps(config))
    stack.enter_context(
        running(
            programs / "prometheus-node-exporter",
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={textfiles}",
            f"--web.listen-address=127.0.0.1:{node_port}",
        )
    )
    stack.enter_context(
        running(
            programs / "prometheus",
            f"--config.file={place}/prometheus.yml",
            f"--storage.tsdb.path={place}/data",
            f"--web.listen-address=127.0.0.1:{prometheus_port}",
        )
    )
    valid = eventually("metrics of tardy", lambda: ask("tardy_run_valid"))
    refused = eventually("the collector", lambda: ask("node_textfile_scrape_error"))
    assert refused[0]["value"][1] == "0", "the textfile collector refused the metrics"
    first = identities()
    answers = {title: ask(query) for title, query in queries()}
    eventually("all rules", lambda: all(rule["health"] == "ok" for rule in rules()))
    eventually(
        "an alert on the machine without a run",
        lambda: [
            alert
            for alert in get("alerts")["alerts"]
            if alert["labels"]["alertname"] == "TardyNeverReported"
            and alert["labels"]["instance"].endswith(str(prometheus_port))
        ],
    )
    alerts = {alert["labels"]["alertname"] for alert in get("alerts")["alerts"]}
    starts = "tardy_run_start_time_seconds"
    before = {one["value"][1] for one in ask(starts)}
    draft = textfiles / "next"
    shutil.copy(next_night, draft)
    draft.rename(textfiles / "tardy.prom")
    eventually("the next night", lambda: {one["value"][1] for one in ask(starts)} != before)
    print(
        json.dumps(
            {
                "hosts": sorted({one["metric"]["tardy_host"] for one in valid}),
                "target": sorted({one["metric"]["host"] for one in valid}),
                "renamed": sorted(name for one in valid for name in one["metric"] if "exported" in name),
                "new_series": len(identities() - first),
                "series": len(first),
                "empty": [title for title, answer in answers.items() if not answer],
                "valid_machines": answers["Machines whose every run is valid"][0]["value"][1],
                "alerts": sorted(alerts),
            }
        )
    )
