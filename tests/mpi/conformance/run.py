#!/usr/bin/env python3
"""run.py SUITE FOLDER…: runs the tests of a built copy of MPICH's test/mpi under the shim, with an epoch change at every edge that comes,
and those that fail there under plain Open MPI too. In the build environment (./dev shell). The suite is not part of this tree.

Plain Open MPI runs the ranks on one node, where they share memory, and then on nodes of their own, as the shim's ranks are: some tests
of one-sided communication end there in one run and not in the next, so three must pass.

A test's edge is the collective that it calls most often, which a first run finds. Each run has a working directory of its own, because
tests of files use the same names."""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[3]
NOT_PLAIN = ("env=", "resultTest=", "xfail", "timeLimit=6", "timeLimit=12")  # tests of MPICH itself, of failing, of patience


def tests_of(suite, folder):
    """(name, ranks, arguments), once each."""
    seen = {}
    for line in (suite / folder / "testlist").read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2 or not words[1].isdigit() or any(w.startswith(NOT_PLAIN) for w in words):
            continue
        arguments = tuple(w[4:] for w in words[2:] if w.startswith("arg="))
        if (suite / folder / words[0]).exists() and int(words[1]) <= 10:
            seen[words[0], int(words[1]), arguments] = None
    return list(seen)


def limited(command, environment, limit):
    """Its output, whatever it is; the limits are those of one test."""
    words = ["env", *(f"{k}={v}" for k, v in environment.items()), "sh", "-c",
             f'ulimit -c 0; exec timeout -k 5 {limit + 20} "$@"', "sh", *command]
    with tempfile.TemporaryDirectory(prefix="bsp-conformance-", ignore_cleanup_errors=True) as directory:
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def passed(output):
    return "No Errors" in output


def under_shim(suite, folder, test, edge, limit):
    name, ranks, arguments = test
    environment = {"BSP_SUPERSTEP": f"{edge}:1"} if edge else {}
    _, output, errors = limited([str(TREE / "build/debug/bin/through_epochs"), str(ranks), str(limit), str(suite / folder / name),
                                 *arguments], environment, limit)
    *rest, last = output.strip().splitlines() or [""]
    try:
        report = json.loads(last)
    except json.JSONDecodeError:
        return {"ok": False, "epochs": 0, "collective": "", "output": output + errors, "exited": []}
    report["ok"] = passed("\n".join(rest)) and not any(report["exited"])
    report["output"] = "\n".join(rest[-20:]) + "\n" + "\n".join(e[-1500:] for e in report.pop("stderr") if e)
    return report


def plain(suite, folder, test, limit):
    name, ranks, arguments = test
    code, output, errors = limited(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,tcp",
                                    "--mca", "btl_tcp_if_include", "lo", "-n", str(ranks), str(suite / folder / name), *arguments],
                                   {"OMPI_MCA_mpi_yield_when_idle": "1"}, limit)
    return code == 0 and passed(output), output[-1500:] + errors[-1500:]


def apart(suite, folder, test, limit):
    name, ranks, arguments = test
    _, output, errors = limited([str(TREE / "build/debug/bin/through_epochs"), str(ranks), str(limit),
                                 str(TREE / "tests/mpi/conformance/without_shim.sh"), str(suite / folder / name), *arguments],
                                {}, limit)
    return passed(output) and '"exited":[' + ",".join(["0"] * ranks) + "]" in output, output[-1500:] + errors[-1500:]


def tried(suite, folder, test, edge, limit):
    report = under_shim(suite, folder, test, edge or "MPI_Allreduce", limit)
    if not edge and report["ok"] and not report["epochs"] and report["collective"] not in ("", "MPI_Allreduce"):
        report = under_shim(suite, folder, test, report["collective"], limit)
    report.update(folder=folder, name=test[0], ranks=test[1], arguments=test[2])
    if not report["ok"]:
        report["plain"], report["plain_output"] = plain(suite, folder, test, limit)
        for _ in range(3):
            if report["plain"]:
                report["plain"], report["plain_output"] = apart(suite, folder, test, limit)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=180, help="seconds of a test; the default is the suite's own")
    parser.add_argument("--edge", help="a call of names::kEdgeCalls")
    parser.add_argument("--only", default="", help="a regular expression for a test's name")
    parser.add_argument("--json", type=pathlib.Path, help="every report, a line each")
    options = parser.parse_args()
    suite = options.suite.resolve()
    todo = [(folder, test) for folder in options.folders for test in tests_of(suite, folder) if re.search(options.only, test[0])]
    good = epochs = bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(tried, suite, folder, test, options.edge, options.limit) for folder, test in todo]
        for future in concurrent.futures.as_completed(futures):
            report = future.result()
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(report) + "\n")
            good += report["ok"]
            epochs += report["epochs"] > 0
            bad += not report["ok"] and report["plain"]
            if not report["ok"] and report["plain"]:
                print("FAILS UNDER THE SHIM ONLY:", report["folder"], report["name"], report["ranks"], *report["arguments"], "exited",
                      report["exited"], "epochs", report["epochs"], "\n" + report["output"][-1200:], flush=True)
            elif not report["ok"]:
                print("fails plain too:", report["folder"], report["name"], report["ranks"], flush=True)
    print(f"{len(todo)} tests: {good} pass, {epochs} of all in more than one epoch; {bad} fail under the shim only")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
