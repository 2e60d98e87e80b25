"""A Prometheus of Debian for a test, fetched as a package where the machine has none."""
import contextlib
import json
import pathlib
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

FETCHED = pathlib.Path(__file__).resolve().parents[2] / "build/prometheus"


def binary(name="prometheus"):
    """The path of it or of promtool, or None."""
    if found := shutil.which(name):
        return found
    path = FETCHED / "usr/bin" / name
    if not path.exists():
        FETCHED.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "prometheus"], cwd=FETCHED, capture_output=True, check=False)
        for package in FETCHED.glob("prometheus_*.deb"):
            subprocess.run(["dpkg", "-x", package, FETCHED], check=True)
    return str(path) if path.exists() else None


# What a ServiceMonitor gives each sample of a target. A metric's own label of such a name becomes exported_…, and alerts and boards that
# use it name the operator instead of a job.
OF_TARGET = {"namespace": "bsp-system", "service": "bsp-metrics", "pod": "bsp-0", "container": "operator", "endpoint": "metrics"}


class Prometheus:
    def __init__(self, port):
        self.port = port

    def get(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]


@contextlib.contextmanager
def prometheus(directory, target, rules, port=19090):
    """One that scrapes the target each second and evaluates the rules."""
    directory = pathlib.Path(directory)
    (directory / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "bsp", "static_configs": [{"targets": [target], "labels": OF_TARGET}]}]}))
    with open(directory / "log", "w", encoding="utf-8") as log:
        words = [binary(), f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                 f"--web.listen-address=127.0.0.1:{port}"]
        with subprocess.Popen(words, stdout=log, stderr=log) as process:
            try:
                wait_until_ready(port, process, directory / "log")
                yield Prometheus(port)
            finally:
                process.terminate()


def wait_until_ready(port, process, log):
    for _ in range(300):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
            return
        time.sleep(0.2)
    raise AssertionError(f"Prometheus does not start: {log.read_text()[-2000:]}")
