#!/usr/bin/env python3
"""pages.py TREE OUT: arranges this tree's documentation for MkDocs: OUT/mkdocs.yml and OUT/pages.

The pages are the Markdown files of the tree as they stand, each at its own path; a path in backquotes that names one of them, or a directory
with a README, becomes a link to it. Pages are added for the CustomResourceDefinitions, field by field, and for the chart's values.
"""
import json
import os
import pathlib
import re
import shutil
import sys

import yaml

SKIPPED = {".git", "build", "golden"}
# The order of the first three sections; every other page of docs/ and every README follows by itself.
SECTIONS = {
    "Use it": ["README.md", "docs/what-moves.md", "docs/seats.md", "docs/checkpoints.md", "examples/README.md",
               "docs/conditions.md", "docs/reasons.md", "docs/faults.md"],
    "Run it in a cluster": ["docs/questions.md", "docs/operate.md", "charts/bsp-operator/README.md", "docs/upgrade.md", "operator/kubectl/README.md",
                            "docs/metrics.md", "CHANGELOG.md"],
    "Reference": ["reference/bspjob.md", "reference/rankmigration.md", "reference/chart-values.md", "docs/glossary.md"],
    "Why ranks move": ["docs/decisions.md", "docs/worth.md"],
}
REST = {"docs": "Measurements", "": "The code"}


def markdown_files(tree):
    found = []
    for directory, below, files in os.walk(tree):
        below[:] = sorted(d for d in below if d not in SKIPPED)
        found += [(pathlib.Path(directory) / f).relative_to(tree).as_posix() for f in files if f.endswith(".md")]
    return sorted(found)


def title_of(text, path):
    for line in text.splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return path


def page_named(word, path, pages):
    """The page that a word in backquotes on the page `path` names, or None."""
    word = word.rstrip("/")
    for base in ("", os.path.dirname(path)):
        name = os.path.normpath(os.path.join(base, word)) if word else ""
        for candidate in (name, f"{name}/README.md"):
            if candidate in pages and candidate != path:
                return candidate
    return None


def with_links(text, path, pages):
    """Links every path in backquotes outside of code blocks and links."""
    lines, in_code = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if not in_code and not line.startswith("    ") and not line.startswith("#"):
            def link(match):
                page = page_named(match[1], path, pages) if re.fullmatch(r"[\w./-]+", match[1]) and ("/" in match[1] or ".md" in match[1]) else None
                return f"[`{match[1]}`]({os.path.relpath(page, os.path.dirname(path) or '.')})" if page else match[0]
            line = re.sub(r"(?<!\[)`([^`]+)`(?!\])", link, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def type_of(schema):
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(part["type"] for part in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {type_of(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {type_of(schema['additionalProperties'])}" if isinstance(schema["additionalProperties"], dict) else "map"
    return schema.get("type", "object")


def limits_of(schema):
    parts = [f"`{value}`" for value in schema.get("enum", [])]
    parts = [", ".join(parts)] if parts else []
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None or most is not None:
        parts.append(f"{least} to {most}" if None not in (least, most) else f"at least {least}" if most is None else f"at most {most}")
    parts += [f"at most {schema[key]} {what}" for key, what in (("maxItems", "items"), ("maxLength", "characters")) if key in schema]
    parts += [rule["message"] for rule in schema.get("x-kubernetes-validations", []) if "message" in rule]
    return "; ".join(parts)


def fields_of(schema, path):
    """(path, schema, whether it is required) of each field, in the schema's order."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, field, name in schema.get("required", [])
        inner = field.get("items", field)
        yield from fields_of(inner, here + ("[]" if field.get("type") == "array" else ""))


def cell(text):
    # Braces and angle brackets are text.
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def reference(crd):
    kind, version = crd["spec"]["names"]["kind"], crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    lines = [f"# {kind}", "", f"`apiVersion: {crd['spec']['group']}/{version['name']}`, `kind: {kind}`; `kubectl explain {kind.lower()}` prints the "
             "same. Fields of `status` are written by the operator.", ""]
    for part in ("spec", "status"):
        body = schema["properties"][part]
        lines += [f"## {part}", "", cell(body.get("description", "")), "", "| field | type | limits | |", "| --- | --- | --- | --- |"]
        for path, field, required in fields_of(body, part):
            needed = "; required" if required else ""
            lines.append(f"| <a id=\"{path}\"></a>`{path}` | {type_of(field)}{needed} | {cell(limits_of(field))} | {cell(field.get('description', ''))} |")
        lines.append("")
    return "\n".join(lines)


def chart_values(text):
    return ("# Values of the chart\n\n`helm upgrade --set NAME=VALUE`, or `-f values.yaml`. These are the defaults, with their meaning.\n\n```yaml\n"
            + text + "```\n")


def pages_of(tree):
    """{path: Markdown} of the whole site."""
    texts = {path: (tree / path).read_text(encoding="utf-8") for path in markdown_files(tree)}
    pages = {path: text for path, text in texts.items() if title_of(text, "")}  # without a title it is a part of another one
    for name in ("bspjob", "rankmigration"):
        pages[f"reference/{name}.md"] = reference(yaml.safe_load((tree / f"crds/{name}.yaml").read_text(encoding="utf-8")))
    pages["reference/chart-values.md"] = chart_values((tree / "charts/bsp-operator/values.yaml").read_text(encoding="utf-8"))
    return {path: with_links(text, path, pages) for path, text in pages.items()}


def navigation(pages):
    left = set(pages)
    sections = []
    for section, wanted in SECTIONS.items():
        there = [path for path in wanted if path in left]
        left -= set(there)
        sections.append({section: [{title_of(pages[path], path): path} for path in there]})
    for prefix, section in REST.items():
        there = sorted(path for path in left if path.startswith(prefix))
        left -= set(there)
        sections.append({section: [{title_of(pages[path], path): path} for path in there]})
    return sections


def configuration(pages):
    return {
        "site_name": "bsp-operator", "docs_dir": "pages", "site_dir": "site", "use_directory_urls": False, "nav": navigation(pages),
        "theme": {"name": "readthedocs", "highlightjs": False, "navigation_depth": 2}, "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "sane_lists", {"toc": {"permalink": "#"}}],
        "validation": {"nav": {"omitted_files": "warn", "not_found": "warn"}, "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}},
    }


def main():
    tree, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    pages = pages_of(tree)
    for path, text in pages.items():
        file = out / "pages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        for image in re.findall(r"!\[[^\]]*\]\(([^)#]+)\)", text):
            target = file.parent / image
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / pathlib.Path(path).parent / image, target)
    # MkDocs reads JSON as YAML.
    (out / "mkdocs.yml").write_text(json.dumps(configuration(pages), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
