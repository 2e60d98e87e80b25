"""What a reader of docs/ looks up by name: every metric in docs/metrics.md, and no other; every reason and event in docs/reasons.md."""
import re

METRIC = re.compile(r'"(bsp_[a-z_]+)"')
NAMED = re.compile(r"`(bsp_[a-z_]+)`")

# Where the code gives a reason its name: (file or folder, what stands around the names).
REASONS = [
    ("operator/decide/model/plan.h", re.compile(r"Of<Reason>\)\s*\{\s*return[^{]*\{([^}]*)\}")),
    ("operator/migrate", re.compile(r'\b(?:roll_back|trouble|give_up)\(\s*("\w+")')),
    ("operator/reconcile/kernel/begin_wave.cc", re.compile(r'\{("\w+"), &WaveBuilder::')),
    ("operator/reconcile/kernel/failure.cc", re.compile(r'(?:Failure\{\s*rank,\s*seat,|\{(?:silent\.)?rank, (?:silent\.)?seat,)\s*("\w+")')),
    ("operator/reconcile", re.compile(r'\{(?:[\w>.\[\]-]*metadata\.name|[\w.]*migration|name), ("[A-Z]\w+"),')),
    ("operator/reconcile", re.compile(r'"(?:Warning|Normal)",\s*("(?!WaveDelayed")\w+")')),  # that one is a condition
]


def sources(tree, place):
    at = tree / place
    return [at] if at.is_file() else sorted(at.rglob("*.cc"))


def check(tree):
    """The violations of the tree."""
    page = (tree / "docs/metrics.md").read_text()
    served = {name for file in sources(tree, "operator") for name in METRIC.findall(file.read_text())}
    named = set(NAMED.findall(page))
    for name in sorted(served - named):
        yield f"docs/metrics.md: {name} is missing"
    for name in sorted(named - served):
        yield f"docs/metrics.md: the operator has no {name}"
    words = set(re.findall(r"`(\w+)`", (tree / "docs/reasons.md").read_text()))
    for place, around in REASONS:
        found = {name for file in sources(tree, place) for part in around.findall(file.read_text()) for name in re.findall(r'"(\w+)"', part)}
        if not found:
            yield f"tests/tidy/documented.py: finds no reason in {place}: correct REASONS"
        for name in sorted(found - words):
            yield f"docs/reasons.md: {name} is missing ({place})"
