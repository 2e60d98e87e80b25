#!/usr/bin/env python3
"""repeat.py COMMAND…: runs it again and again, each time with the next number in BSP_SEED, until BSP_SOAK_SECONDS (default 900) are over.

It ends at the first failure and prints the seed that replays it. BSP_SOAK_SEED is the first seed (default: the day, so that each day has its own).
"""
import datetime
import os
import subprocess
import sys
import time


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    until = time.monotonic() + float(os.environ.get("BSP_SOAK_SECONDS") or 900)
    first = int(os.environ.get("BSP_SOAK_SEED") or datetime.date.today().strftime("%y%m%d000"))
    seed = first
    while seed == first or time.monotonic() < until:
        done = subprocess.run(sys.argv[1:], env={**os.environ, "BSP_SEED": str(seed)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            sys.stdout.buffer.write(done.stdout)
            sys.exit(f"BSP_SEED={seed}: exit status {done.returncode}, after {seed - first} good runs")
        seed += 1
    print(f"{seed - first} runs, BSP_SEED={first} to {seed - 1}")


if __name__ == "__main__":
    main()
