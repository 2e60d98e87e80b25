"""Where a job's ranks are, from the packed form of its status (crds/README.md)."""


def _ranks_in(text):
    for run in text.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def with_places(status):
    """The status with `ranks` as a list: of each rank, its Set, node and pod."""
    packed = status.get("ranks")
    if not packed:
        return status
    places = [{"rank": rank} for rank in range(packed["count"])]
    for place, ranks in packed.get("place", {}).items():
        for rank in _ranks_in(ranks):
            places[rank]["set"], places[rank]["node"] = place.split("/")
    for pod, ranks in packed.get("pod", {}).items():
        for rank in _ranks_in(ranks):
            places[rank]["pod"] = pod.replace("-r*-", f"-r{rank}-")
    return status | {"ranks": places}
