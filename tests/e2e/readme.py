"""The commands of README.md, as a reader would type them."""
from local_job import TREE


def commands(heading):
    """The commands in the section's code blocks, in order: continued lines joined, comments kept (a shell ignores them)."""
    lines = (TREE / "README.md").read_text().splitlines()
    begin = lines.index("## " + heading) + 1
    found, open_ended = [], False
    for line in lines[begin:]:
        if line.startswith("## "):
            break
        if not line.startswith("    ") or not line.strip():
            continue
        text = line.strip()
        if open_ended:
            found[-1] += " " + text.removesuffix("\\")
        else:
            found.append(text.removesuffix("\\"))
        open_ended = text.endswith("\\")
    return found
