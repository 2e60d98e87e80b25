#!/usr/bin/env python3
"""stutter.py PROGRAM [FILTER]: runs the cases of a GoogleTest program (by default all), each in a process that is stopped again and again,
as by a busy machine. Whatever it has started runs on. A test that must be quicker than what it tests fails.

It ends with exit status 1 if a case has failed or taken longer than 20 minutes.
"""
import concurrent.futures
import random
import signal
import subprocess
import sys
import threading

RUNS, STOPPED, AT_ONCE, LIMIT = 0.05, 0.3, 3, 1200  # seconds on average; cases; seconds


def cases_of(program, chosen):
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={chosen}"], stdout=subprocess.PIPE, text=True, check=True)
    suite, cases = "", []
    for line in listed.stdout.splitlines():
        name = line.split("#")[0].strip()
        if line.startswith("  "):
            cases.append(suite + name)
        elif name.endswith("."):
            suite = name
    return cases


def stop_again_and_again(process, ended):
    while not ended.wait(random.expovariate(1 / RUNS)):
        process.send_signal(signal.SIGSTOP)
        ended.wait(random.uniform(0, 2 * STOPPED))
        process.send_signal(signal.SIGCONT)


def run(program, case):
    """Its output if it fails, else None."""
    ended = threading.Event()
    with subprocess.Popen([program, f"--gtest_filter={case}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        stops = threading.Thread(target=stop_again_and_again, args=(process, ended))
        stops.start()
        try:
            output = process.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0]
        ended.set()
        stops.join()
    return output if process.returncode != 0 else None


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program, chosen = sys.argv[1], (sys.argv[2:] or ["*"])[0]
    cases = cases_of(program, chosen)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        failed = {case: output for case, output in zip(cases, pool.map(lambda case: run(program, case), cases)) if output is not None}
    for output in failed.values():
        sys.stdout.buffer.write(output)
    print(f"{len(cases)} cases, failed: {', '.join(failed) or 'none'}", flush=True)
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
