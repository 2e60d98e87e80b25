"""The copy checker (tests/audit) in complete jobs: the ranks of a stamping lattice_boltzmann stamp into a shared file, whichever pods
they are in, and the auditor reads it when the job has ended."""
import collections
import os
import pathlib
import sys

from local_job import TREE, lattice_boltzmann, until_told

sys.path.insert(0, str(TREE / "tests/audit"))
import audit  # noqa: E402 (in another directory)

MOUNT = "/stamps"
VOLUME = "stamps"


def stamping(*arguments, **options):
    """Like local_job.lattice_boltzmann, but stamping."""
    _, *words = lattice_boltzmann(*arguments, **options)
    return ["lattice_boltzmann_stamping", *words]


class Stamps:
    """One job's stamps: the file NAME in a directory that is `here` for this test and `there` on the nodes of the job's pods."""

    def __init__(self, name, here, there):
        self.name, self.there, self.file = name, there, pathlib.Path(here) / name
        self.told = self.file.with_name(f"{name}.told")
        self.inside = f"{MOUNT}/{name}"

    def __enter__(self):
        self.file.write_text("")
        self.told.unlink(missing_ok=True)
        os.chmod(self.file, 0o666)  # for the program's user, and for root without capabilities
        os.chmod(self.file.parent, 0o777)
        return self

    def __exit__(self, *_):
        self.file.unlink(missing_ok=True)
        self.told.unlink(missing_ok=True)

    def stamping_until_told(self):
        """A program that stamps until tell()."""
        return ["lattice_boltzmann_stamping", *until_told(f"{self.inside}.told")[1:]]

    def tell(self):
        """Ends the program, whichever nodes can be reached."""
        self.told.touch()

    def into(self, pod_spec):
        """Adds what a stamping program needs to the container `app` of that pod."""
        app, = (c for c in pod_spec["containers"] if c["name"] == "app")
        app.setdefault("env", []).append({"name": "STAMPS", "value": self.inside})
        app.setdefault("volumeMounts", []).append({"name": VOLUME, "mountPath": MOUNT})
        pod_spec.setdefault("volumes", []).append({"name": VOLUME, "hostPath": {"path": str(self.there)}})

    def read(self):
        with open(self.file, encoding="ascii") as lines:
            return audit.read(lines)

    def pauses(self, rank):
        """In seconds, of each barrier from which `rank` returned in another pod: from the last rank's arrival at it to the last rank's return."""
        before, after = collections.defaultdict(dict), collections.defaultdict(dict)  # the barrier's number: {rank: its stamp}
        for stamp in self.read():
            before[stamp.superstep][stamp.rank] = stamp
            after[stamp.superstep - 1].setdefault(stamp.rank, stamp)
        def last(stamps):
            return max(stamp.ns for stamp in stamps.values())
        return [(last(after[barrier]) - last(before[barrier])) / 1e9 for barrier in sorted(after)
                if rank in before[barrier] and before[barrier][rank].pod != after[barrier][rank].pod]

    def findings(self, ranks=2, resumes=False):
        """The auditor's findings. Requires stamps of every rank, because a file without them would prove nothing."""
        stamps = self.read()
        seen = collections.Counter(stamp.rank for stamp in stamps)
        assert set(seen) == set(range(ranks)), f"not every rank has stamped: {seen}"
        return audit.findings(stamps, resumes)

    def forgery(self, rank):
        """A command that poses as that rank for half a second, in whichever pod runs it; its exit status is 124."""
        return ["timeout", "0.5", "stamper", self.inside, str(rank)]
