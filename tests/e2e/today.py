"""Which part of the fault matrix ./dev test --kubernetes runs today: all cases would take two hours."""
import datetime
import os

PARTS = 6  # of the fault matrix: one a day
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
