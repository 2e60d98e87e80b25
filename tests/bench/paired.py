"""Statistics of things measured in turn, for the benchmarks in Python (paired.h is that of those in C++)."""
import math


def interval(values):
    """The 95 % confidence interval of the median, by the sign test; with less than six values all of them."""
    ordered, outside = sorted(values), 0
    while 2 * sum(math.comb(len(ordered), k) for k in range(outside + 2)) <= 0.05 * 2 ** len(ordered):
        outside += 1
    return ordered[outside], ordered[-1 - outside]
