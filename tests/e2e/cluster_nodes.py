"""Access to the test cluster's nodes, whose processes run on this machine: run directories of pods, fault points, and the number of
copies of a rank at any moment."""
import contextlib
import json
import os
import pathlib
import signal
import threading

from cluster_job import STATE
from local_job import on_host, wait_for

EMPTY_DIR = "volumes/kubernetes.io~empty-dir/bsp-run"


def container_of(node):
    """The name of a machine's container, as tests/cluster/lib.sh gives it."""
    return f"bsp-cluster-{(STATE / 'run/id').read_text().strip()}-{node}"


def machines():
    """{node: (first process, container id)} of the running machines; `control` is one of them."""
    prefix = container_of("")
    names = on_host("podman", "ps", "-q", "--filter", f"name=^{prefix}").stdout.split()
    found = json.loads(on_host("podman", "inspect", *names).stdout) if names else []
    return {c["Name"].removeprefix("/").removeprefix(prefix): (c["State"]["Pid"], c["Id"]) for c in found}


def run_directory(pod, nodes):
    """/run/bsp of a pod's containers as a path on this machine; None before the kubelet has mounted it."""
    machine = nodes.get(pod.get("spec", {}).get("nodeName", ""))
    if not machine:
        return None
    directory = pathlib.Path(f"/proc/{machine[0]}/root/var/lib/kubelet/pods/{pod['metadata']['uid']}/{EMPTY_DIR}")
    return directory if directory.is_mount() else None


def arm(pod_of, point, action, nodes=None, seconds=60):
    """Arms a fault point (base/core/fault.h) in the pod that pod_of() returns, once it has its run directory. A caller that races
    with the pod passes the machines."""
    nodes = nodes or machines()
    directory = wait_for(f"the run directory of the pod for {point}", lambda: run_directory(pod_of() or {}, nodes), seconds,
                         detail=lambda: pod_of())
    new = directory / f"{point}.new"
    new.write_text(action)
    return new.rename(directory / point)


def has_fired(armed):
    return armed.with_name(armed.name + ".fired").exists()


def text_of(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def environment(pid):
    return dict(pair.split("=", 1) for pair in text_of(pid, "environ").split("\0") if "=" in pair)


def state(pid):
    """R, S, D …; T or t if it is stopped; Z, X or nothing if it has ended, or was killed and waits for CPU time to exit: a node's quota
    may delay that, but the program executes no further instruction."""
    fields = text_of(pid, "stat").rpartition(")")[2].split()
    pending = [int(line.split()[1], 16) for line in text_of(pid, "status").splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    killed = any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending)
    ending = fields and int(fields[6]) & 0x4  # PF_EXITING
    return "X" if killed or ending else fields[0] if fields else ""


def processes(comm, **variables):
    """Ids of the processes whose program name begins with `comm` and whose environment has these variables."""
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit() and text_of(entry.name, "comm").startswith(comm)]
    return [pid for pid in pids if variables.items() <= environment(pid).items()] if variables else pids


def kill_process(comm, how=signal.SIGKILL, **variables):
    """Sends SIGKILL (or `how`) to the one process with that program and environment; False if there is none."""
    for pid in processes(comm, **variables):
        try:
            os.kill(pid, how)
            return True
        except ProcessLookupError:
            return False
    return False


@contextlib.contextmanager
def starved(node, thousandths):
    """Limits all pods of the node together to `thousandths` of a core. Uses periods of 100 ms, because the minimum quota is 1 ms."""
    group = "/sys/fs/cgroup/kubepods" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "/sys/fs/cgroup/cpu/kubepods"
    files = ["cpu.max"] if "cpu/" not in group else ["cpu.cfs_period_us", "cpu.cfs_quota_us"]
    values = [f"{thousandths * 100} 100000"] if len(files) == 1 else ["100000", str(thousandths * 100)]

    def in_node(script):
        done = on_host("podman", "exec", container_of(node), "sh", "-ec", script)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    before = in_node("; ".join(f"cat {group}/{file}" for file in files))
    in_node("; ".join(f"echo {value} >{group}/{file}" for value, file in zip(values, files)))
    try:
        yield
    finally:
        # Set the quota first: the new period with the old quota might exceed the parent's share.
        in_node("; ".join(f"echo {value} >{group}/{file}" for value, file in reversed(list(zip(before, files)))))


def killed_for_memory(comm):
    """The kernel's log lines about processes of that program that it has killed at their container's memory limit, with time; the kernel
    drops the oldest."""
    return {line for line in on_host("dmesg").stdout.splitlines()
            if "Memory cgroup out of memory: Killed process" in line and f"({comm})" in line}


class Copies(threading.Thread):
    """Constantly watches the programs of a job's ranks on all nodes, and records each moment at which two copies of one rank could compute.

    A stopped copy doesn't compute. A copy on a node that is cut off does, until it is killed there (crds/fencing.h)."""

    def __init__(self, job, program="lattice"):
        super().__init__(daemon=True)
        self.job, self.program = job, program
        self.two = []  # findings
        self.end = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.join()

    def find(self):
        """{rank: process ids}. A restored process keeps its environment, including its rank and its job's name."""
        found = {}
        for pid in processes(self.program):
            have = environment(pid)
            if have.get("HOSTNAME", "").startswith(self.job + "-r"):
                found.setdefault(have.get("OMPI_COMM_WORLD_RANK"), []).append(pid)
        return found

    def run(self):
        found, rounds = {}, 0
        while not self.end.wait(0.01):
            if rounds % 40 == 0:
                found = self.find()
            rounds += 1
            for rank, pids in found.items():
                if len(pids) < 2:
                    continue
                # Check twice, because the two copies can't be observed at the same instant: one that computes in both checks did so in between.
                first = {pid: state(pid) for pid in pids}
                second = {pid: state(pid) for pid in pids}
                compute = [pid for pid in pids if first[pid] and second[pid] and not set(first[pid] + second[pid]) & set("TtZX")]
                if len(compute) > 1:
                    self.two.append((rank, {pid: (second[pid], text_of(pid, "cgroup").strip().splitlines()[-1:]) for pid in compute}))
