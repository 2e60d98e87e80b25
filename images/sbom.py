#!/usr/bin/env python3
"""sbom.py VERSION EPOCH DIRECTORY…: the SPDX 2.3 document of a release, on the standard output.

Each library in a directory is a file of a Debian package of this root; the document names those packages with their versions. It also names
criu and rclone, of which the runtime image has the program, and ca-certificates.
"""
import datetime
import json
import pathlib
import subprocess
import sys


def packages_of(directories):
    """{(name, version, source)} of the packages that own the libraries."""
    names = {"criu", "rclone", "ca-certificates"}
    for directory in directories:
        for file in pathlib.Path(directory).glob("*.so*"):
            found = subprocess.run(["dpkg-query", "-S", f"*/{file.name}"], capture_output=True, text=True).stdout.splitlines()
            names.update(line.split(":")[0] for line in found[:1])
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\n", *sorted(names)], capture_output=True, text=True)
    return sorted({tuple(line.split("\t")) for line in shown.stdout.splitlines()})


def main():
    version, epoch, *directories = sys.argv[1:]
    packages = packages_of([d for d in directories if pathlib.Path(d).is_dir()])
    if len(packages) < 5:
        sys.exit(f"sbom.py: dpkg knows only {packages}")
    root = {"SPDXID": "SPDXRef-bsp-operator", "name": "bsp-operator", "versionInfo": version, "downloadLocation": "NOASSERTION",
            "licenseDeclared": "Apache-2.0", "filesAnalyzed": False}
    parts = [{"SPDXID": f"SPDXRef-{name.replace('+', '-')}", "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
              "filesAnalyzed": False, "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                                        "referenceLocator": f"pkg:deb/debian/{name}@{number}?arch=amd64&upstream={source}"}]}
             for name, number, source in packages]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root["SPDXID"]}]
    relations += [{"spdxElementId": root["SPDXID"], "relationshipType": "CONTAINS", "relatedSpdxElement": part["SPDXID"]} for part in parts]
    created = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"bsp-operator-{version}",
               "documentNamespace": f"https://migbsp.io/spdx/bsp-operator-{version}",
               "creationInfo": {"created": created, "creators": ["Tool: images/sbom.py"]},
               "packages": [root, *parts], "relationships": relations}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
