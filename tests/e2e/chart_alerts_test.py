#!/usr/bin/env python3
"""The chart's alerts about an operator that is gone, evaluated by promtool with made-up series: they fire without any sample of it."""
import json
import pathlib
import subprocess
import sys
import tempfile

from prometheus import binary

ALERTS = pathlib.Path(__file__).resolve().parents[2] / "charts/bsp-operator/monitoring/alerts.yaml"
LEADS = [{"series": 'bsp_operator_leader{pod="bsp-0"}', "values": "1x10"}, {"series": 'bsp_operator_leader{pod="bsp-1"}', "values": "0x10"}]
STANDS_BY = [{"series": 'bsp_operator_leader{pod="bsp-1"}', "values": "0x10"}]


def pod(name, node, kind="BSPJob"):
    return {"series": f'kube_pod_info{{namespace="science",pod="{name}",node="{node}",created_by_kind="{kind}"}}', "values": "1x10"}


def node(name, cordoned):
    return {"series": f'kube_node_spec_unschedulable{{node="{name}"}}', "values": f"{int(cordoned)}x10"}


NODES = [node("n1", True), node("n2", False), node("n3", True)]
RANKS = [pod("j-r0-g0", "n1"), pod("j-r1-g4", "n1"), pod("j-r2-g0", "n2"), pod("web-r1-g1", "n3", "ReplicaSet"), pod("web", "n1", "ReplicaSet")]
# Series, and the nodes whose drains are reported; None: there is a leader, so that nothing fires.
CASES = [
    (LEADS + NODES + RANKS, None),
    (STANDS_BY + NODES + RANKS, {"n1": 2}),
    (NODES + RANKS, {"n1": 2}),
    (RANKS + [node("n1", False), node("n2", False)], {}),
    ([], {}),
]


def summary(alert, **labels):
    rules = json.loads(subprocess.run(["python3", "-c", "import json,sys,yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))", ALERTS],
                                      capture_output=True, check=True, text=True).stdout)["groups"][0]["rules"]
    rule, = (r for r in rules if r["alert"] == alert)
    texts = {}
    for name, text in rule["annotations"].items():
        for label, value in labels.items():
            text = text.replace("{{ $labels.%s }}" % label, str(value)).replace("{{ $%s }}" % label, str(value))
        texts[name] = text
    return texts


def expected(drains):
    none = {"eval_time": "5m", "alertname": "BspNoLeader"}
    held = {"eval_time": "5m", "alertname": "BspDrainWaitsForOperator"}
    if drains is None:
        return [none, held]
    none["exp_alerts"] = [{"exp_labels": {"severity": "critical"}, "exp_annotations": summary("BspNoLeader")}]
    held["exp_alerts"] = [{"exp_labels": {"severity": "critical", "node": n},
                           "exp_annotations": summary("BspDrainWaitsForOperator", node=n, value=ranks)} for n, ranks in drains.items()]
    return [none, held]


def main():
    promtool = binary("promtool")
    if not promtool:
        print("skipped: there is no promtool, and apt-get finds none")
        return 77
    tests = [{"interval": "1m", "input_series": series, "alert_rule_test": expected(drains)} for series, drains in CASES]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}, file)
        file.flush()
        return subprocess.run([promtool, "test", "rules", file.name], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
