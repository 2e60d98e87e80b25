#!/usr/bin/env python3
"""Reads the stamps written by stamp.h and reports whether any rank ran twice at the same time.

audit.py FILE...    exit status 1 and one line for each finding; 2 if a file has no stamps

A copy is a rank in a pod. It runs from its first stamp to its last: a pod's name is never reused, so any stamp of another copy
of the same rank in between is a double run. Nor may a copy repeat supersteps that the previous one has computed, unless the job
restarted at its first superstep.
"""
import collections
import sys

Stamp = collections.namedtuple("Stamp", "ns rank pod pid superstep")
Copy = collections.namedtuple("Copy", "rank pod first last")  # stamps


def read(lines):
    """All stamps, by time. An invalid line is an error: the unreadable stamp could be the one that matters."""
    stamps = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if len(words) != 5 or not line.endswith("\n"):
            raise ValueError(f"line {number} is not a stamp: {line!r}")
        stamps.append(Stamp(int(words[0]), int(words[1]), words[2], int(words[3]), int(words[4])))
    return sorted(stamps)


def copies_of(stamps):
    """{rank: its copies, by their first stamp}"""
    spans = {}
    for stamp in stamps:
        key = (stamp.rank, stamp.pod, stamp.pid)
        first, _ = spans.get(key, (stamp, stamp))
        spans[key] = (first, stamp)
    ranks = collections.defaultdict(list)
    for (rank, pod, _), (first, last) in spans.items():
        ranks[rank].append(Copy(rank, pod, first, last))
    return {rank: sorted(copies, key=lambda c: c.first.ns) for rank, copies in sorted(ranks.items())}


def findings(stamps, resumes=False):
    """One sentence for each double run and each superstep that was computed again, which a job that resumes from checkpoint sets may."""
    found = []
    for rank, copies in copies_of(stamps).items():
        running = copies[0]  # the longest-running one so far
        for copy in copies[1:]:
            if copy.first.ns <= running.last.ns:
                together = (min(copy.last.ns, running.last.ns) - copy.first.ns) / 1e6
                found.append(f"rank {rank} ran twice for {together:.1f} ms: in {running.pod} (PID {running.first.pid}) until "
                             f"{running.last.ns}, in {copy.pod} (PID {copy.first.pid}) from {copy.first.ns}")
            elif not resumes and 0 < copy.first.superstep < running.last.superstep:
                found.append(f"rank {rank} computed again from superstep {copy.first.superstep} in {copy.pod}, having reached "
                             f"{running.last.superstep} in {running.pod}")
            running = max(running, copy, key=lambda c: c.last.ns)
    return found


def main(files):
    status = 0
    for file in files:
        with open(file, encoding="ascii") as lines:
            stamps = read(lines)
        for finding in findings(stamps):
            print(f"{file}: {finding}")
            status = 1
        if not stamps:
            print(f"{file}: no stamps")
            return 2
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
