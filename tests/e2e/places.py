"""A job's status from its stored form (crds/README.md)."""
import json

SWAPPED = str.maketrans("'\"", "\"'")  # the quotes of `internal`


def _ranks_in(text):
    for run in text.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)


def whole(status):
    """The status with what `internal` holds at its place (crds/stored_status.h)."""
    if "internal" not in status:
        return status
    shown = {k: v for k, v in status.items() if k != "internal"}
    return _merged(json.loads(status["internal"].translate(SWAPPED)), shown)


def _merged(below, above):
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {k: _merged(below.get(k), v) for k, v in above.items()}


def with_places(status):
    """The whole status with `ranks` as a list: of each rank, its Set, node, pod, seat and container, and of the slowest their time.
    Without `ranks` where that isn't known."""
    status = whole(status)
    packed = status.get("ranks", {})
    if "count" not in packed:  # none has a place, or `internal` was removed and the operator hasn't rebuilt it yet
        return {k: v for k, v in status.items() if k != "ranks"}
    places = [{"rank": rank, "seat": 0} for rank in range(packed["count"])]
    for place, ranks in packed.get("place", {}).items():
        for rank in _ranks_in(ranks):
            places[rank]["set"], places[rank]["node"] = place.split("/")
    for seconds, ranks in packed.get("computeSeconds", {}).items():
        for rank in _ranks_in(ranks):
            places[rank]["computeSeconds"] = float(seconds)
    seats = packed.get("seat", {})
    for seat in sorted(seats, key=lambda seat: seat == "next"):
        for rank in _ranks_in(seats[seat]):
            places[rank]["seat"] = places[rank - 1]["seat"] + 1 if seat == "next" else int(seat)
    for pod, ranks in packed.get("pod", {}).items():
        for rank in _ranks_in(ranks):
            places[rank]["pod"] = pod.replace("-r*-", f"-r{rank - places[rank]['seat']}-")
    for place in places:
        place["container"] = f"app-{place['seat']}" if place["seat"] else "app"
    return status | {"ranks": places}
