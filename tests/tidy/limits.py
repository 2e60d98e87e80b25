"""What grows unnoticed, and how large it may become: lines of Markdown and of C++, whose comments clang-format leaves alone, members of a
class, files of a folder.

Each limit has a list of what exceeded it when it was introduced, with its size then. The lists only shrink: an entry that is within the
limit, or that could be lower by more than a tenth, is a violation until it is corrected.
"""
import collections
import os
import pathlib
import re

COLUMNS = 140  # of a line of Markdown or C++; most of those listed are rows of a table
WIDE = {
    "docs/decide.md": 159, "docs/exchange.md": 182, "docs/gain.md": 181, "docs/reproduction.md": 319,
    "docs/worth.md": 158, "operator/decide/README.md": 196, "operator/exchange/README.md": 144,
    "operator/reconcile/README.md": 163,
}

MEMBERS = 12  # of a class of the product: those whose names end with an underscore
LARGE = {
    "TlsConnection": 15, "Reflector": 14, "PodWorker": 17, "ExchangeReservations": 15,
    "Sidecars": 15, "Shell": 16, "AllGather": 14, "Measure": 23, "Seat": 17,
}

FILES = 40  # of a folder of the product
CROWDED = {
    "operator/reconcile/shell/job": 56,
}

CLASS = re.compile(r"^\s*(?:class|struct)\s+(?:alignas\(\w+\)\s+)?(\w+)[^;]*\{\s*$")
MEMBER = re.compile(r"^\s+[^()=]*[\w>\]&*?]\s+[&*]*\w+_(\s*=.*|\{.*|\[.*)?;\s*$")


def members_of(text):
    """The number of members of each class of a header."""
    depth, opened, found = 0, [], collections.Counter()
    for line in text.splitlines():
        code = line.split("//")[0]
        if match := CLASS.match(code):
            opened.append((match[1], depth))
        if opened and depth == opened[-1][1] + 1 and MEMBER.match(code):
            found[opened[-1][0]] += 1
        depth += code.count("{") - code.count("}")
        while opened and depth <= opened[-1][1]:
            opened.pop()
    return found


def exceeded(what, unit, sizes, limit, listed, name):
    """One line per violation. sizes: of everything of the kind, by name."""
    for item, size in sorted(sizes.items()):
        allowed = listed.get(item, limit)
        if size > allowed:
            yield f"{item}: {what} has {size} {unit}, the limit is {allowed} (tests/tidy/limits.py)"
        elif item in listed and (size <= limit or size < allowed * 0.9):
            yield f"tests/tidy/limits.py: {name} lists {item} with {listed[item]} {unit}, and it has {size}: " + (
                "remove it" if size <= limit else "lower it")
    for item in sorted(set(listed) - set(sizes)):
        yield f"tests/tidy/limits.py: {name} lists {item}, which is gone: remove it"


def files_of(tree):
    """The names of the tree's files, without what is built."""
    for folder, folders, files in os.walk(tree):
        folders[:] = [f for f in folders if f != ".git" and not (f == "build" and folder == str(tree))]
        yield from ((pathlib.Path(folder) / file).relative_to(tree).as_posix() for file in files)


def check(tree, tops):
    """The violations of the tree; tops: the product's folders."""
    tree = pathlib.Path(tree)
    names = sorted(files_of(tree))
    product = [n for n in names if n.split("/")[0] in tops and "/" in n]
    wrapped = [n for n in names if n.endswith(".md")] + [n for n in product if n.endswith((".h", ".cc"))]
    widths = {n: max(map(len, (tree / n).read_text().splitlines()), default=0) for n in wrapped}
    yield from exceeded("a line", "columns", widths, COLUMNS, WIDE, "WIDE")
    members = collections.Counter()
    for name in product:
        if name.endswith(".h"):
            members |= members_of((tree / name).read_text())
    yield from exceeded("the class", "members", members, MEMBERS, LARGE, "LARGE")
    files = collections.Counter(str(pathlib.PurePath(n).parent) for n in product)
    yield from exceeded("the folder", "files", files, FILES, CROWDED, "CROWDED")
