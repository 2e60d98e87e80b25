"""The newest release on this machine (./dev release VERSION), for the tests that install it."""
import pathlib

from cluster_job import TREE, skip


def newest():
    """(directory, version) of the newest complete release below build/; without one the test is skipped."""
    complete = sorted((TREE / "build").glob("release-*/SHA256SUMS"), key=lambda sums: sums.stat().st_mtime)
    if not complete:
        skip("there is no release; ./dev release VERSION makes one")
    directory = pathlib.Path(complete[-1]).parent
    return directory, directory.name.removeprefix("release-")
