#!/usr/bin/env python3
"""tests/tidy/tidy.py [TREE]: checks this tree's structure where the compiler doesn't.

1. Includes follow the table EDGES, which allows no unused edge.
2. Pure modules include nothing for time, I/O or random numbers.
3. Only the guards call raw close() and kill().
4. Only crds/names.h spells out names that cross a process boundary.
5. base/json/fields.h reads untrusted JSON, because it never throws on a wrong type.
6. A library behind a seam is included only there.
7. No text counts "1 ranks": base/core/counted.h says it right.
8. No line of Markdown, class or folder exceeds its limit (limits.py).
9. docs/metrics.md and docs/reasons.md name what the code has (documented.py).

Prints one line per violation; exits with 1 if there is any.
"""
import pathlib
import re
import sys

import documented
import limits

# Module: the modules it may include besides itself. A file belongs to the module with the longest matching name.
EDGES = {
    "base/core": [],
    "base/json": ["base/core"],
    "base/net": ["base/core", "base/json"],
    "crds": ["base/core", "base/json", "crds/choices"],
    "crds/choices": ["base/core"],  # the API's enums are the model's
    # What a call is made of; below, its rooms: the model, the papers' heuristics, and ours.
    "operator/decide": ["base/core", "operator/decide/auto", "operator/decide/fast", "operator/decide/model"],
    "operator/decide/model": ["base/core", "crds/choices", "operator/decide/fast"],
    "operator/decide/fast": ["base/core", "operator/decide/model"],  # behind the seam of model/means.h
    "operator/decide/papers": ["operator/decide/model"],
    "operator/decide/bottleneck": ["operator/decide/fast", "operator/decide/model", "operator/decide/papers"],
    "operator/decide/auto": ["operator/decide/bottleneck", "operator/decide/fast", "operator/decide/model",
                             "operator/decide/papers"],
    "operator/record": ["base/core", "base/json", "crds", "operator/decide", "operator/decide/model"],
    "operator/exchange": ["crds"],
    "operator/exchange/link": ["base/core", "base/net", "operator/exchange"],  # link_group: sockets and a thread
    "operator/step": ["base/core"],
    "operator/migrate": ["base/core", "base/json", "crds", "operator/step"],
    "operator/kube": ["base/core", "base/json"],
    "operator/kinds": ["crds", "operator/kube"],
    "operator/cli": ["base/core", "crds"],
    "operator/screens": ["base/core", "base/json", "crds", "operator/cli", "operator/reconcile/capacity", "operator/record"],
    "operator/kubectl": ["base/core", "base/json", "base/net", "crds", "operator/cli", "operator/local/command", "operator/screens"],
    "operator/observe": ["base/core", "crds", "operator/decide/auto", "operator/decide/model"],
    # The kernels are pure; only the shell and the capacity's stores do I/O.
    "operator/reconcile/capacity": ["base/core", "base/json", "crds"],
    "operator/reconcile/capacity/stores": ["base/core", "base/json", "crds", "operator/exchange/link", "operator/kinds",
                                           "operator/kube", "operator/reconcile/capacity"],
    "operator/reconcile/kernel": ["base/core", "base/json", "crds", "operator/decide", "operator/decide/model", "operator/migrate",
                                  "operator/observe", "operator/reconcile/capacity", "operator/record", "operator/step"],
    "operator/reconcile/shell": ["base/core", "base/json", "base/net", "crds", "operator/kinds", "operator/kube",
                                 "operator/observe", "operator/reconcile/capacity",
                                 "operator/reconcile/capacity/stores", "operator/reconcile/kernel"],
    "operator/local/command": ["base/core"],  # starts a tool
    "operator/local": ["base/core", "base/json", "crds", "operator/kinds", "operator/kube", "operator/local/command"],
    # The commands put node and shell together.
    "operator/local/cli": ["base/core", "base/json", "crds", "operator/cli", "operator/kinds", "operator/local",
                           "operator/reconcile/kernel", "operator/reconcile/shell", "operator/screens"],
    "operator/controller": ["base/core", "base/net", "crds", "operator/cli", "operator/exchange",
                            "operator/exchange/link", "operator/kinds", "operator/kube", "operator/reconcile/capacity",
                            "operator/reconcile/kernel", "operator/reconcile/shell"],
    "operator/advise": ["base/core", "crds", "operator/cli", "operator/decide", "operator/decide/model", "operator/record"],
    "operator/convert": ["base/core", "base/json", "crds", "operator/check", "operator/cli"],
    "operator/check": ["base/core", "base/json", "crds", "operator/cli", "operator/kinds", "operator/local", "operator/local/cli",
                       "operator/screens", "sidecar/ring"],
    "operator": ["operator/advise", "operator/check", "operator/cli", "operator/controller", "operator/convert",
                 "operator/local/cli"],
    # The simulator; only sim/inside.cc includes SimGrid.
    "sim": ["base/core", "crds", "operator/decide", "operator/decide/auto", "operator/decide/model", "operator/local"],
    "sim/grid5000": ["operator/decide/model"],
    "sim/applications": ["base/core", "operator/decide/model", "sim", "sim/grid5000"],
    "sim/yardsticks": ["operator/decide/model", "sim"],
    "sim/reproduce": ["base/core", "operator/cli", "operator/decide/model", "sim", "sim/applications",
                      "sim/grid5000", "sim/yardsticks"],
    "sim/exchange": ["crds", "operator/cli", "operator/exchange"],
    "sim/cli": ["base/core", "crds", "operator/cli", "operator/decide", "operator/decide/auto", "operator/decide/model",
                "operator/observe", "operator/record", "operator/screens", "sim", "sim/applications", "sim/trace"],
    "sim/trace": ["operator/record", "sim"],
    # Shared by the three programs, which include nothing else of each other.
    "sidecar/ring": [],
    "sidecar/control": ["base/core"],
    "sidecar/transfer": ["base/core"],
    "sidecar/storage": ["base/core", "crds"],
    # The wrappers that the program calls; below, the shim's rooms, each of which includes only those above it.
    "sidecar/shim/process": ["crds", "sidecar/ring"],
    "sidecar/shim/library": ["crds", "sidecar/shim/process"],
    "sidecar/shim/measure": ["sidecar/ring", "sidecar/shim/library", "sidecar/shim/process"],
    "sidecar/shim/handles": ["sidecar/shim/library", "sidecar/shim/measure", "sidecar/shim/process"],
    "sidecar/shim/messages": ["sidecar/shim/handles", "sidecar/shim/library", "sidecar/shim/measure", "sidecar/shim/process"],
    "sidecar/shim/objects": ["sidecar/shim/handles", "sidecar/shim/library", "sidecar/shim/measure", "sidecar/shim/messages",
                             "sidecar/shim/process"],
    "sidecar/shim/epoch": ["base/core", "crds", "sidecar/ring", "sidecar/shim/handles", "sidecar/shim/library", "sidecar/shim/measure",
                           "sidecar/shim/messages", "sidecar/shim/objects", "sidecar/shim/process"],
    "sidecar/shim": ["sidecar/shim/epoch", "sidecar/shim/handles", "sidecar/shim/measure", "sidecar/shim/messages",
                     "sidecar/shim/objects"],
    "sidecar/init": ["base/core", "crds", "sidecar/control", "sidecar/ring"],
    "sidecar/init/supervisor": ["base/core", "crds", "sidecar/control", "sidecar/init", "sidecar/ring", "sidecar/transfer"],
    "sidecar/init/main": ["crds", "sidecar/init", "sidecar/init/supervisor"],
    "sidecar/agent": ["base/core", "base/json", "base/net", "crds", "sidecar/agent/collect", "sidecar/agent/pmix",
                      "sidecar/control", "sidecar/ring", "sidecar/storage", "sidecar/transfer"],
    "sidecar/agent/pmix": ["base/core", "base/net", "crds"],
    "sidecar/agent/collect": ["base/core", "base/json", "base/net", "crds", "sidecar/ring"],
    "apps": [],  # ordinary MPI programs
}

# Pure modules: functions of their arguments, so they may not include these headers.
PURE = ["operator/decide", "operator/exchange", "operator/migrate", "operator/record", "operator/screens"]
IMPURE = re.compile(r"(fstream|iostream|cstdio|print|filesystem|random|thread|mutex|ctime|time\.h|unistd\.h|fcntl\.h"
                    r"|sys/.*|base/core/(log|fd|fault)\.h)")
IMPURE_PARTS = ["operator/exchange/link"]
NO_TIME = ["operator/decide", "operator/exchange", "operator/record"]  # migrate gets the time as a value
TIME = re.compile(r"(chrono|base/core/clock\.h)")

# Files that may close descriptors and kill processes, each with the reason.
GUARDS = {
    "base/core/fd.h": "the guard of descriptors",
    "base/core/fault.cc": "kills its own process when a test says so",
    "sidecar/init/memory/borrowed_thread": "stops the process again that it has borrowed a thread of",
    "sidecar/init/process": "the guard of the processes it starts",
    "sidecar/init/supervisor": "PID 1: signalling the program is its job",
    "sidecar/shim": "C code in a foreign process: no RAII over the program's own descriptors, and it stops itself",
    "operator/local/process": "the guard of the processes the operator starts",
}
# ::close(…) and ::kill(…), or without :: if called with plain arguments; a member's declaration isn't a call.
RAW_CALL = re.compile(r"(?<!\w)::(close|kill)\s*\(|(?<![\w.>:])(close\([\w.]+(\(\))?\)|kill\([\w.-]+, ?\w+\))")
BOUNDARY_NAME = re.compile(r'"[^"]*(migbsp\.io|/run/bsp(?![-\w]))')
NAMES_MAY_BE_IN = ["crds/"]

# at() and value() of nlohmann::json throw if a field is missing or of another type; such an exception once ended all jobs.
THROWING_READ = re.compile(r'(\.|->)(at|value)\(("|std::string\(names::)')
MAY_THROW = {
    "operator/local/cli/resources.cc": "reads the CRDs that are part of the program",
}

# Libraries that could be replaced: the prefix of their headers, and the only files that may include them.
SEAMS = {
    "cpprest/": ["operator/kube/http.cc"],  # archived upstream; see operator/kube/README.md
    "pplx/": ["operator/kube/http.cc"],  # a part of cpprestsdk
    "CLI/": ["operator/cli/command.cc"],
    "simgrid/": ["sim/inside.cc"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


# A number and a noun in the plural, in a format. What the second matches names shapes and limits that a person rarely sees.
MANY = re.compile(r'"[^"]*(?<!1 to )\{[^}"]*\} (?:more )?(?:ranks|pods|slots|supersteps|sidecars|Sets|jobs|nodes)\b(?! at most)')
MAY_COUNT_MANY = ("apps/", "operator/convert/", "operator/decide/model/", "operator/record/", "sidecar/", "sim/")


def module_of(path):
    """operator/exchange/link_group.cc -> operator/exchange/link; None if the file has no module."""
    found = [m for m in EDGES if path == m or path.startswith(m + "/") or path.startswith(m + ".")
             or path.startswith(m + "_")]
    return max(found, key=len, default=None)


def belongs(module, modules):
    """Whether a module is one of these or a part of one; operator/exchange/link, which has an entry of its own, is no part."""
    return module in modules or (module is not None and module not in IMPURE_PARTS and any(module.startswith(m + "/") for m in modules))


def check_includes(path, text, tree):
    module = module_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match[2]
        where = f"{path}:{number}"
        if belongs(module, PURE) and IMPURE.fullmatch(header):
            yield f"{where}: {module} is pure and may not include {header}"
        if belongs(module, NO_TIME) and TIME.fullmatch(header):
            yield f"{where}: {module} may not depend on time, and so not include {header}"
        if header.startswith("tests/"):
            yield f"{where}: nothing includes tests"
        for prefix, files in SEAMS.items():
            if header.startswith(prefix) and path not in files:
                yield f"{where}: only {' and '.join(files)} may include {prefix}*"
        # An include of this tree: relative to its root, or to the including file.
        local = header if (tree / header).exists() else str(pathlib.PurePath(path).parent / header)
        target = module_of(local) if (tree / local).exists() else None
        if target is None or target == module or target in EDGES[module]:
            continue
        yield f"{where}: {module} may not include {header} ({target}); it may include {', '.join(EDGES[module]) or 'nothing'}"


def included_modules(path, text, tree):
    for line in text.splitlines():
        match = INCLUDE.match(line)
        if match:
            local = match[2] if (tree / match[2]).exists() else str(pathlib.PurePath(path).parent / match[2])
            if (tree / local).exists():
                yield module_of(local)


def unused_permissions(used):
    for module, allowed in EDGES.items():
        for target in allowed:
            if target not in used.get(module, ()):
                yield f"tests/tidy/tidy.py: {module} may include {target}, and doesn't; remove it from EDGES"


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def check_calls(path, text):
    if any(path.startswith(guard) for guard in GUARDS):
        return
    for number, line in enumerate(COMMENT_OR_STRING.sub(blank, text).splitlines(), 1):
        if RAW_CALL.search(line):
            yield f"{path}:{number}: raw close() or kill(); use base/core/fd.h or a guard named in tests/tidy/tidy.py"


def check_names(path, text):
    if any(path.startswith(place) for place in NAMES_MAY_BE_IN):
        return
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if BOUNDARY_NAME.search(code) and not INCLUDE.match(line):
            yield f"{path}:{number}: a literal name that crosses a process boundary; use the constant in crds/names.h"


def check_reads(path, text):
    if not path.startswith("operator/") or path in MAY_THROW:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if THROWING_READ.search(line.split("//")[0]):
            yield f"{path}:{number}: at() or value() of JSON throws on a wrong type; read it with base/json/fields.h"


def check_counts(path, text):
    if path.startswith(MAY_COUNT_MANY):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if MANY.search(line.split("//")[0]):
            yield f'{path}:{number}: it says "1 ranks" where there is one; use counted() of base/core/counted.h'


def violations(tree):
    used = {}
    for top in sorted({m.split("/")[0] for m in EDGES}):
        for file in sorted((tree / top).rglob("*")):
            if file.suffix not in (".h", ".cc", ".c") or not file.is_file():
                continue
            path = file.relative_to(tree).as_posix()
            text = file.read_text()
            yield from check_includes(path, text, tree)
            used.setdefault(module_of(path), set()).update(included_modules(path, text, tree))
            yield from check_calls(path, text)
            yield from check_names(path, text)
            yield from check_reads(path, text)
            yield from check_counts(path, text)
    if (tree / "tests/tidy/tidy.py").exists():  # the whole tree, not a test's sample
        yield from unused_permissions(used)
    if (tree / "tests/tidy/limits.py").exists():
        yield from limits.check(tree, {m.split("/")[0] for m in EDGES})
        yield from documented.check(tree)


def main():
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(violations(tree))
    print("\n".join(found) if found else "tidy: no violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
