#!/usr/bin/env python3
"""wrapper_golden_test.py GENERATED_DIR: compares the generated wrapper of MPI_Allreduce with MPI_Allreduce.inc in this folder."""
import os
import pathlib
import re
import sys

FUNCTION = "MPI_Allreduce"
HEAD = f"""\
// The wrapper of {FUNCTION} that sidecar/shim/generate.py generates at build time (wrappers_<n>.gen.cc). This copy is only for
// reading and comparison; UPDATE_GOLDEN=1 rewrites it.
"""


def main():
    generated = "".join(path.read_text() for path in sorted(pathlib.Path(sys.argv[1]).glob("wrappers_*.gen.cc")))
    found = re.findall(rf"^int {FUNCTION}\(.*?^}}\n", generated, re.M | re.S)
    golden = pathlib.Path(__file__).with_name(f"{FUNCTION}.inc")
    if len(found) != 1:
        sys.exit(f"{sys.argv[1]} has {len(found)} wrappers of {FUNCTION} instead of one")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(HEAD + found[0])
    if golden.read_text() != HEAD + found[0]:
        sys.exit(f"{golden} differs from the generated wrapper; if the change is intended, run with UPDATE_GOLDEN=1:\n{found[0]}")
    print(f"{golden.name} matches the generator's output")


if __name__ == "__main__":
    main()
