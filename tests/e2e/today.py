"""What of the cluster's tests a run has time for: .ci/run must end within 90 minutes, wherever it runs."""
import datetime
import os
import time

PARTS = 6  # of the fault matrix: one a day
UNTIL = "BSP_KUBERNETES_UNTIL"  # seconds since 1970; no test of the cluster starts later
PART = "BSP_FAULTS_PART"  # 0 to 5, instead of today's


def part_of(cases, number):
    """Every sixth case, along the diagonals of a matrix with six columns: a different phase for each fault."""
    return [case for index, case in enumerate(cases) if (index + index // PARTS) % PARTS == number]


def number_of_today(environment=None, today=None):
    """The part that BSP_FAULTS_PART names, or that of the date."""
    named = (os.environ if environment is None else environment).get(PART, "")
    if not named:
        return (today or datetime.datetime.now(datetime.timezone.utc)).timetuple().tm_yday % PARTS
    if named not in map(str, range(PARTS)):
        raise ValueError(f"{PART}={named}: it must be a number from 0 to {PARTS - 1}")
    return int(named)


def no_time_left(environment=None, now=None):
    """Why no further test may start; "" while there is time, and where nobody set a limit."""
    until = (os.environ if environment is None else environment).get(UNTIL, "")
    if not until or (time.time() if now is None else now) < float(until):
        return ""
    at = datetime.datetime.fromtimestamp(float(until), datetime.timezone.utc)
    return f"no time is left: after {at:%H:%M} UTC no test of the cluster starts ({UNTIL})"
