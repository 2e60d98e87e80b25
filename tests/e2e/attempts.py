"""What a program writes in several attempts, of which each goes on from a checkpoint set, compared with a run without a loss. Pure."""


def differs(expected, seen, kills):
    """Why these lines, of all attempts, aren't those of a run without a kill; "": they are. Each attempt repeats some of them, from the
    middle of a line perhaps; and before it a survivor may have said why it ended."""
    states = {(0, 0, False)}  # of the lines that are expected before; of losses; a survivor speaks
    for line in seen:
        further = {(at + 1, losses, False) for at, losses, ends in states if not ends and at < len(expected) and expected[at] == line}
        for at, losses, _ in states:
            if losses < kills:
                further |= {(back + 1, losses + 1, False) for back in range(min(at + 1, len(expected)))
                            if line and expected[back].endswith(line)}
                if not line or line not in expected:
                    further.add((at, losses, True))
        if not further:
            at = max(states)[0]
            return f"not {line!r} but {expected[at] if at < len(expected) else 'the end'!r}"
        states = further
    return "" if any(at == len(expected) for at, _, _ in states) else f"it ends before {expected[min(max(states)[0], len(expected) - 1)]!r}"
