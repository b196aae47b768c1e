"""What other programs make of deploy/ and of the metrics: their own readers, which refuse what they
do not know.

Arguments: a file in the text format of Prometheus, the same runs in OpenMetrics. Prints as JSON how
many samples, manifests and panels there were. Fails where anything is refused, or lost by a reader.
"""

import json
import pathlib
import sys

import kubernetes_validate
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as prometheus

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"


def samples(parser, file):
    families = list(parser.text_string_to_metric_families(pathlib.Path(file).read_text()))
    all_of_them = [sample for family in families for sample in family.samples]
    return {(name, *sorted(labels.items())): value for name, labels, value, *_ in all_of_them}


def lost(given, kept, place=""):
    """Places of what a reader did not keep, or kept as something else."""
    if isinstance(given, dict) and isinstance(kept, dict):
        names = [(name, f"{place}/{name}") for name in given]
        return [at for name, at in names if name not in kept] + [
            one for name, at in names if name in kept for one in lost(given[name], kept[name], at)
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept))
        return [one for at, both in pairs for one in lost(*both, f"{place}/{at}")]
    return [] if given == kept else [place]


text, open_text = samples(prometheus, sys.argv[1]), samples(openmetrics, sys.argv[2])
assert text == open_text, f"not in both: {text.items() ^ open_text.items()}"
infinite = {key: value for key, value in text.items() if ("le", "+Inf") in key}
assert infinite, "no histogram"

manifests = 0
for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
    for manifest in yaml.safe_load_all(file.read_text()):
        kubernetes_validate.validate(manifest, "1.37", strict=True)
        manifests += 1

register_default_plugins()
given = json.loads((DEPLOY / "grafana/tardy-fleet.json").read_text())
kept = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))
assert not lost(given, kept), f"Grafana's types lose {lost(given, kept)}"
panels = len(given["panels"])
print(json.dumps({"samples": len(text), "manifests": manifests, "panels": panels}))
