#!/usr/bin/env python3
"""Makes mpi_api.txt from the MPI Forum's apis.json, as the PyPI package pympistandard carries it (MIT).

The whole file is 2 MB, most of it descriptions; the generator needs one line per procedure:
  MPI_Name name=kind:direction[:length] ...       length "*" or a parameter's name: an array in C
Usage: extract.py PATH/apis.json > mpi_api.txt
Names are kept so that the generator can compare them with those in mpi.h.
"""
import json
import sys


def field(param):
    text = f"{param['name']}={param['kind']}:{param['param_direction']}"
    length = param["length"]
    if length is not None:
        text += ":" + ("x".join(length) if isinstance(length, list) else str(length))
    return text


def main():
    procedures = json.load(open(sys.argv[1]))
    for procedure in sorted(procedures.values(), key=lambda p: p["name"]):
        attributes = procedure["attributes"]
        if not attributes["c_expressible"] or attributes["callback"]:
            continue
        if attributes["predefined_function"] or procedure["name"].startswith("MPI_T_"):
            continue
        params = [p for p in procedure["parameters"]
                  if "c_parameter" not in p["suppress"] and not p["large_only"]]
        print(" ".join([procedure["name"]] + [field(p) for p in params]))


main()
