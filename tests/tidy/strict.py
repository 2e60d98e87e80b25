#!/usr/bin/env python3
"""strict.py BUILD_DIR [all | PREFIX…]: compiles product sources one by one.

In the unity build a source may lack an include that its neighbour has. Here each source is its own translation unit, with its
library's options and precompiled header (compile_commands.json). The compiler only checks it, because writing objects would take
longer. Without further arguments: the sources that the last COMMITS commits touched, or whose header they touched; all, where git
can't tell. PREFIX…: for example base/ or operator/decide/pm.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

PRODUCT = ("base/", "crds/", "operator/", "sidecar/", "sim/")
STRICT = ["-fsyntax-only", "-Werror"]
COMMITS = 60
DROPPED = {"-o": 1, "-c": 1, "-MF": 1, "-MT": 1, "-MD": 0}  # options, each with its number of words


def options_of(command):
    words = shlex.split(command)
    if words[0].endswith("ccache"):
        words = words[1:]
    options, i = [], 0
    while i < len(words):
        if words[i] in DROPPED:
            i += DROPPED[words[i]]
        else:
            options.append(words[i])
        i += 1
    return options


def sources(build, tree):
    """Each product source once, with the directory and options of its library."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        parts = [file]
        if "/Unity/unity_" in str(file):
            parts = [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"', file.read_text(), re.M)]
        for part in parts:
            if not part.is_relative_to(tree) or part.is_relative_to(build):
                continue
            name = part.relative_to(tree).as_posix()
            if name.startswith(PRODUCT):
                found.setdefault(name, (entry["directory"], options_of(entry.get("command") or shlex.join(entry["arguments"]))))
    return found


def touched(tree):
    """The sources that recent commits concern, and None where git can't tell (a shallow clone, an unpacked archive)."""
    git = subprocess.run(["git", "-C", tree, "diff", "--name-only", f"HEAD~{COMMITS}", "--", *PRODUCT], capture_output=True, text=True)
    if git.returncode != 0:
        return None
    return {str(pathlib.PurePosixPath(name).with_suffix(".cc")) for name in git.stdout.split()}


def check(name, directory, options, tree):
    done = subprocess.run([*options, *STRICT, str(tree / name)], cwd=directory, capture_output=True, text=True)
    return name, done.returncode, done.stderr


def main():
    build, tree = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(__file__).resolve().parents[2]
    prefixes = tuple(sys.argv[2:])
    some = None if prefixes else touched(tree)
    if prefixes in ((), ("all",)):
        prefixes = PRODUCT
    wanted = {name: how for name, how in sorted(sources(build, tree).items()) if name.startswith(prefixes) and (some is None or name in some)}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, code, errors in pool.map(lambda item: check(item[0], *item[1], tree), wanted.items()):
            if code != 0:
                failed += 1
                print(f"{name}:\n{errors}", flush=True)
    print(f"{len(wanted) - failed} of {len(wanted)} sources are clean")
    return 1 if failed or (not wanted and some is None) else 0


if __name__ == "__main__":
    sys.exit(main())
