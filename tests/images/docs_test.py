#!/usr/bin/env python3
"""docs/site/pages.py: every page is reached, every link leads somewhere, and the reference has each field of the schemas. `./dev docs` lets
MkDocs check the same again, and needs its package."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

import yaml

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "docs/site"))
import pages as site  # noqa: E402


def anchors_of(text):
    """Of headings, as Python-Markdown's toc makes them, and of fields."""
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


def every_field(schema, path=""):
    found = set()
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        found.add(here)
        found |= every_field(field.get("items", field), here + ("[]" if field.get("type") == "array" else ""))
    return found


class Pages(unittest.TestCase):
    pages = site.pages_of(TREE)

    def test_each_is_in_the_navigation_once(self):
        listed = [path for section in site.navigation(self.pages) for entries in section.values() for entry in entries for path in entry.values()]
        self.assertEqual(sorted(listed), sorted(self.pages))
        self.assertIn("docs/operate.md", listed)
        self.assertIn("sidecar/shim/README.md", listed)

    def test_links_lead_somewhere(self):
        links = 0
        for path, text in self.pages.items():
            plain = re.sub(r"(?ms)^```.*?^```|^    .*?$", "", text)
            for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", plain):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                page = (pathlib.PurePosixPath(path).parent / name).as_posix() if name else path
                page = os.path.normpath(page)
                with self.subTest(page=path, link=target):
                    self.assertIn(page, self.pages)
                    if anchor:
                        self.assertIn(anchor, anchors_of(self.pages[page]))
                links += 1
        self.assertGreater(links, 100, "paths in backquotes became links")

    def test_paths_become_links_but_code_does_not(self):
        pages = {"README.md": "# A", "docs/operate.md": "# B", "operator/kube/README.md": "# C"}
        text = "see `docs/operate.md`, `operator/kube` and `helm`, [`docs/operate.md`](x)\n\n    run docs/operate.md `docs/operate.md`\n"
        self.assertEqual(site.with_links(text, "README.md", pages),
                         "see [`docs/operate.md`](docs/operate.md), [`operator/kube`](operator/kube/README.md) and `helm`, "
                         "[`docs/operate.md`](x)\n\n    run docs/operate.md `docs/operate.md`\n")
        self.assertEqual(site.with_links("`operate.md` and `../operator/kube`", "docs/worth.md", pages),
                         "[`operate.md`](operate.md) and [`../operator/kube`](../operator/kube/README.md)\n")

    def test_the_reference_has_each_field(self):
        for name in ("bspjob", "rankmigration"):
            schema = yaml.safe_load((TREE / f"crds/{name}.yaml").read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            there = set(re.findall(r'<a id="([^"]+)"', self.pages[f"reference/{name}.md"]))
            self.assertEqual(there, {f for f in every_field(schema) if f.startswith(("spec.", "status."))})

    def test_limits_are_told(self):
        text = self.pages["reference/bspjob.md"]
        self.assertRegex(text, r"`spec\.ranks` \| integer; required \| 1 to 10000 \|")
        self.assertRegex(text, r"`spec\.rescheduling\.mode` \| string \| `\w+`, `\w+`")
        self.assertNotIn("| None |", text)

    def test_what_is_written_can_be_read_by_mkdocs(self):
        with tempfile.TemporaryDirectory() as directory:
            sys.argv = ["pages.py", str(TREE), directory + "/docs"]
            site.main()
            made = yaml.safe_load((pathlib.Path(directory) / "docs/mkdocs.yml").read_text())
            self.assertEqual(made["site_name"], "bsp-operator")
            self.assertTrue((pathlib.Path(directory) / "docs/pages/docs/demo.svg").exists())


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
