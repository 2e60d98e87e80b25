#!/usr/bin/env python3
"""Tests tidy.py. Each case is a small tree and the violation that tidy.py must report."""
import pathlib
import subprocess
import sys
import tempfile

import documented
import limits

TIDY = pathlib.Path(__file__).with_name("tidy.py")

CASES = [  # files, expected text in the output; None: no violation
    ({"operator/decide/a.cc": '#include "base/core/ids.h"', "base/core/ids.h": ""}, None),
    ({"operator/decide/a.cc": '#include "crds/wire.h"', "crds/wire.h": ""}, "decide/a.cc:1: operator/decide may not"),
    ({"operator/decide/a.cc": "", "tests/tidy/tidy.py": ""}, "operator/decide may include base/core, and doesn't"),
    ({"base/core/a.h": '#include "base/net/link.h"', "base/net/link.h": ""}, "base/core may not include base/net"),
    ({"operator/decide/a.cc": "#include <chrono>"}, "operator/decide may not depend on time"),
    ({"operator/migrate/a.cc": "#include <chrono>"}, None),
    ({"operator/migrate/a.cc": "#include <fstream>"}, "operator/migrate is pure"),
    ({"operator/reconcile/kernel/job.cc": '#include "operator/kube/client.h"', "operator/kube/client.h": ""}, "job.cc:1"),
    ({"operator/reconcile/shell/shell.cc": '#include "operator/kube/client.h"', "operator/kube/client.h": ""}, None),
    ({"operator/exchange/link_group.cc": '#include "base/net/link.h"', "base/net/link.h": ""}, None),
    ({"operator/exchange/linkage.cc": '#include "base/net/link.h"', "base/net/link.h": ""}, "linkage"),
    ({"operator/kube/a.cc": '#include "crds/bspjob.h"', "crds/bspjob.h": ""}, "operator/kube may not"),
    ({"sidecar/agent/gate.cc": '#include "sidecar/control/control.h"', "sidecar/control/control.h": ""}, None),
    ({"sidecar/agent/gate.cc": '#include "sidecar/init/process.h"', "sidecar/init/process.h": ""}, "gate.cc:1"),
    ({"apps/lu/main.cc": '#include "base/core/fd.h"', "base/core/fd.h": ""}, "apps may not include base/core/fd.h"),
    ({"apps/lu/main.cc": '#include "lu.h"', "apps/lu/lu.h": ""}, None),
    ({"crds/a.cc": '#include "tests/unit/x.h"'}, "nothing includes tests"),
    ({"base/net/a.cc": "void f() { ::close(3); }"}, "base/net/a.cc:1: raw close()"),
    ({"base/net/a.cc": "\n  kill(pid, 9);"}, "base/net/a.cc:2: raw close() or kill()"),
    ({"base/net/a.cc": "socket.close(); // close(3)\nlog(\"close(3)\"); void close(); ring_close(1);"}, None),
    ({"base/core/fd.h": "::close(fd_);"}, None),
    ({"operator/local/a.cc": 'f("migbsp.io/job");'}, "a literal name that crosses a process boundary"),
    ({"operator/kube/a.cc": 'pod.at("metadata");'}, "a.cc:1: at() or value() of JSON throws"),
    ({"operator/kube/a.cc": 'pod->value("phase", "");'}, "a.cc:1: at() or value() of JSON throws"),
    ({"operator/kube/a.cc": 'text_at(pod, "phase"); list.at(3); result.value();'}, None),
    ({"operator/kube/http.cc": "#include <cpprest/http_client.h>", "sim/inside.cc": "#include <simgrid/s4u.hpp>"}, None),
    ({"operator/kube/api.cc": "#include <cpprest/http_client.h>"}, "only operator/kube/http.cc may include cpprest/*"),
    ({"operator/kube/http.h": "#include <pplx/pplxtasks.h>"}, "only operator/kube/http.cc may include pplx/*"),
    ({"operator/main.cc": "#include <CLI/CLI.hpp>"}, "only operator/cli/command.cc may include CLI/*"),
    ({"crds/a.cc": 'std::format("has {} ranks", n);'}, 'a.cc:1: it says "1 ranks"'),
    ({"crds/a.cc": 'std::format("and {} more pods", n);'}, 'a.cc:1: it says "1 ranks"'),
    ({"crds/a.cc": 'std::format("1 to {} nodes, {} ranks at most, rank {}: {}", counted(n, "rank")); // {} ranks'}, None),
    ({"crds/names.h": 'f("migbsp.io/job");', "sidecar/agent/a.cc": "// see /run/bsp"}, None),
]


LIMITS = [  # sizes, the list, expected text; "": no violation. The limit is 10
    ({"a": 10}, {}, ""),
    ({"a": 11}, {}, "a: it has 11 units, the limit is 10"),
    ({"a": 20}, {"a": 20}, ""),
    ({"a": 21}, {"a": 20}, "a: it has 21 units, the limit is 20"),
    ({"a": 19}, {"a": 20}, ""),
    ({"a": 17}, {"a": 20}, "LIST lists a with 20 units, and it has 17: lower it"),
    ({"a": 10}, {"a": 20}, "LIST lists a with 20 units, and it has 10: remove it"),
    ({}, {"a": 20}, "LIST lists a, which is gone"),
]
HEADER = """class A : public B {
 public:
  void f();
  int g() const { return a_ = 1; }

 private:
  struct Inner {
    int inner_;
  };
  int a_ = 0;  // why
  std::map<int, C> b_;
  net::Loop& c_;
  std::unique_ptr<D> d_{};
};
"""


def limits_fail():
    """How many cases of limits.py fail."""
    failures = 0
    for sizes, listed, expected in LIMITS:
        found = list(limits.exceeded("it", "units", sizes, 10, listed, "LIST"))
        if (found != [] if not expected else len(found) != 1 or expected not in found[0]):
            failures += 1
            print(f"FAILED: {sizes} with {listed}\n  expected: {expected or 'no violation'}\n  found: {found}")
    if limits.members_of(HEADER) != {"A": 4, "Inner": 1}:
        failures += 1
        print(f"FAILED: members of the header: {limits.members_of(HEADER)}")
    return failures


PAGES = [  # the operator's code, docs/metrics.md, expected violations
    ('m("bsp_jobs");', "`bsp_jobs`", []),
    ('m("bsp_jobs");', "", ["docs/metrics.md: bsp_jobs is missing"]),
    ("", "`bsp_jobs`", ["docs/metrics.md: the operator has no bsp_jobs"]),
]
WAVES = 'roll_back(\n"TargetLost", why);'


def pages_fail():
    """How many cases of documented.py fail."""
    failures = 0
    for code, page, expected in PAGES:
        with tempfile.TemporaryDirectory() as tree:
            files = {"operator/a.cc": code, "docs/metrics.md": page, "docs/reasons.md": "", "operator/migrate/step.cc": WAVES}
            for name, text in files.items():
                file = pathlib.Path(tree, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = list(documented.check(pathlib.Path(tree)))
        expected = [*expected, "docs/reasons.md: TargetLost is missing (operator/migrate)"]
        if [f for f in found if "correct REASONS" not in f] != expected:
            failures += 1
            print(f"FAILED: {code} beside {page}\n  expected: {expected}\n  found: {found}")
    return failures


def main():
    failures = limits_fail() + pages_fail()
    for files, expected in CASES:
        with tempfile.TemporaryDirectory() as tree:
            for name, text in files.items():
                file = pathlib.Path(tree, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text + "\n")
            run = subprocess.run([sys.executable, TIDY, tree], capture_output=True, text=True)
        good = (run.returncode == 0) if expected is None else (run.returncode == 1 and expected in run.stdout)
        if not good:
            failures += 1
            print(f"FAILED: {files}\n  expected: {expected or 'no violation'}\n  output: {run.stdout}{run.stderr}")
    cases = len(CASES) + len(LIMITS) + 1 + len(PAGES)
    print(f"{cases - failures} of {cases} cases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
