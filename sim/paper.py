"""How the documents' figures are drawn: one style, and files that only change with their data."""
import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (the backend comes first)

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]  # Okabe and Ito, for all eyes
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

pyplot.rcParams.update({
    "svg.hashsalt": "bsp-operator",  # the same ids in every run
    "svg.fonttype": "none",
    "font.family": "serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "figure.constrained_layout.use": True,
})


def save(figure, path):
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    # matplotlib ends some lines with a blank.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def table(header, rows, right=0):
    """Markdown. The columns from `right` on are aligned to the right; None: none."""
    def line(cells):
        return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)
    rules = ["---:" if right is not None and i >= right else "---" for i in range(len(header))]
    return "\n".join(line(cells) for cells in [header, rules, *rows])
