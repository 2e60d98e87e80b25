#!/usr/bin/env python3
"""wrapper_golden_test.py GENERATED_DIR: the generated wrapper of MPI_Allreduce is the one in MPI_Allreduce.inc, beside this file."""
import os
import pathlib
import re
import sys

FUNCTION = "MPI_Allreduce"
HEAD = f"""\
// Where {FUNCTION} is wrapped, as sidecar/shim/generate.py writes it at build time (wrappers_<n>.gen.cc). This copy is only read and
// compared; UPDATE_GOLDEN=1 writes it anew.
"""


def main():
    generated = "".join(path.read_text() for path in sorted(pathlib.Path(sys.argv[1]).glob("wrappers_*.gen.cc")))
    found = re.findall(rf"^int {FUNCTION}\(.*?^}}\n", generated, re.M | re.S)
    golden = pathlib.Path(__file__).with_name(f"{FUNCTION}.inc")
    if len(found) != 1:
        sys.exit(f"{sys.argv[1]} has {len(found)} wrappers of {FUNCTION}, not one")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(HEAD + found[0])
    if golden.read_text() != HEAD + found[0]:
        sys.exit(f"{golden} differs from the generated wrapper; if the change is intended, run with UPDATE_GOLDEN=1:\n{found[0]}")
    print(f"{golden.name} is what the generator writes")


if __name__ == "__main__":
    main()
