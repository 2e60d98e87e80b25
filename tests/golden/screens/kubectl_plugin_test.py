#!/usr/bin/env python3
"""kubectl_plugin_test.py BIN: how kubectl-bsp calls kubectl. A script stands in for kubectl: it notes its arguments and input, and answers
from files. The screens themselves are compared by screens_golden_test, and a real cluster answers in tests/e2e."""
import base64
import hashlib
import hmac
import json
import os
import pathlib
import pty
import re
import stat
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop())
FAKE = r"""#!/usr/bin/env python3
import json, os, pathlib, sys
here = pathlib.Path(os.environ["FAKE"])
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\n")
verb, kind = sys.argv[1], sys.argv[2]
if verb == "create":
    (here / "created").write_text(sys.stdin.read())
    print("rankmigration.migbsp.io/it created\033[2J")
    sys.exit(0)
if verb == "annotate":
    print("bspjob.migbsp.io/weather annotated\033[2J")
    sys.exit(0)
if (here / "down").exists():
    sys.exit("The connection to the server was refused\033[2J")
answer = here / kind
if not answer.exists():
    sys.stderr.write(f"Error from server (NotFound): {kind} not found\n")
    sys.exit(7)
sys.stdout.write(answer.read_text())
"""
JOB = {"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob",
       "metadata": {"name": "weather", "namespace": "science", "uid": "1", "creationTimestamp": "2026-11-21T04:00:00Z",
                    "managedFields": [{"manager": "kubectl", "fieldsV1": {}}]},
       "spec": {"ranks": 2, "template": {"spec": {"containers": [{"name": "app", "image": "x"}]}}},
       "status": {"phase": "Running", "superstep": 40, "startTime": "2026-11-21T04:00:01Z",
                  "ranksPerSet": [{"set": "fast", "ranks": 0, "slots": 2}, {"set": "slow", "ranks": 2, "slots": 2}],
                  "ranks": [{"rank": 0, "set": "slow", "node": "s-0", "computeSeconds": 1}, {"rank": 1, "set": "slow", "node": "s-1", "computeSeconds": 2}]}}
MIGRATION = {"apiVersion": "migbsp.io/v1alpha1", "kind": "RankMigration", "metadata": {"name": "m", "namespace": "science"},
             "spec": {"job": "weather", "rank": 1, "targetSet": "fast"},
             "status": {"phase": "RolledBack", "sourceSet": "slow", "message": "\u001b[2Jthe target is gone"}}
JOBS, MIGRATIONS = "bspjobs.migbsp.io", "rankmigrations.migbsp.io"


def items(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


class Plugin(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.here = pathlib.Path(directory.name)
        kubectl = self.here / "kubectl"
        kubectl.write_text(FAKE)
        kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
        self.env = {**os.environ, "FAKE": str(self.here), "PATH": f"{self.here}:{os.environ['PATH']}"}
        self.answer(JOBS, json.dumps(JOB))
        other = {**MIGRATION, "spec": {"job": "another", "rank": 0, "targetSet": "fast"}}
        self.answer(MIGRATIONS, items(MIGRATION, other, {"kind": "Odd"}))

    def answer(self, kind, text):
        (self.here / kind).write_text(text)

    def run_it(self, *words, env=None):
        done = subprocess.run([BIN / "kubectl-bsp", *words], env=env or self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def calls(self):
        return [json.loads(line) for line in (self.here / "calls").read_text().splitlines()]

    def test_is_one_static_file(self):
        done = subprocess.run(["readelf", "-l", BIN / "kubectl-bsp"], capture_output=True, text=True, check=True)
        self.assertNotIn("INTERP", done.stdout)

    def test_asks_for_a_checkpoint_set_and_lists_them(self):
        status, out, err = self.run_it("checkpoint", "weather", "-n", "science")
        self.assertEqual((status, out), (1, ""), "it has no storage")
        self.assertIn("has no spec.checkpoint.storage", err)
        job = json.loads(json.dumps(JOB))
        job["spec"]["checkpoint"] = {"storage": {"persistentVolumeClaim": {"claimName": "sets"}}}
        self.answer(JOBS, json.dumps(job))
        (self.here / "calls").write_text("")
        status, out, err = self.run_it("checkpoint", "weather", "-n", "science")
        self.assertEqual((status, out), (0, "bspjob.migbsp.io/weather annotated?[2J\n"), err)
        annotate = self.calls()[-1]
        self.assertEqual(annotate[:4], ["annotate", JOBS, "weather", "--overwrite"])
        self.assertRegex(annotate[4], r"^migbsp\.io/checkpoint=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")
        self.assertEqual(annotate[5:], ["--namespace=science"])
        status, out, err = self.run_it("checkpoints", "weather")
        self.assertEqual((status, out), (0, "job weather has no checkpoint set yet\n"), err)
        job["status"]["checkpoint"] = {"idsUsed": 7, "sets": [
            {"id": 6, "superstep": 30, "time": "2026-11-21T04:00:01Z", "bytes": 3000000, "unusable": "\u001b[2Jtorn"},
            {"id": 7, "superstep": 40, "time": "2026-11-21T04:05:01Z", "bytes": 3000000}]}
        self.answer(JOBS, json.dumps(job))
        status, out, err = self.run_it("checkpoints", "weather")
        lines = out.splitlines()
        self.assertEqual([line.split()[:2] for line in lines], [["SET", "SUPERSTEP"], ["7", "40"], ["6", "30"]], out + err)
        self.assertIn("unusable: ?[2Jtorn", lines[2])

    def test_exports_a_set_with_its_key(self):
        job = json.loads(json.dumps(JOB))
        digests = base64.b64encode(b"d" * 64).decode()
        job["status"]["checkpoint"] = {"idsUsed": 7, "sets": [{"id": id, "superstep": 40, "digests": digests} for id in (6, 7)]}
        self.answer(JOBS, json.dumps(job))

        def authority(seed, name="bsp-authority"):
            return {"kind": "Secret", "metadata": {"name": name, "namespace": "bsp-system"}, "data": {"seed": base64.b64encode(seed).decode()}}
        seed = bytes(range(32))
        self.answer("secrets", items(authority(seed), authority(b"o" * 32, "bsp-values"), {"kind": "Odd"}))
        status, out, err = self.run_it("checkpoints", "weather", "--export", "--context", "a b", "-n", "science")
        self.assertEqual((status, err), (0, ""), out)
        self.assertEqual(self.calls()[-1], ["get", "secrets", "--selector=app.kubernetes.io/name=bsp-operator", "--all-namespaces", "-o", "json",
                                            "--context=a b"])

        def derived(key, purpose):
            return hmac.new(key, b"bsp-operator " + purpose + b"\x01", hashlib.sha256).digest()
        key = derived(derived(seed, b"checkpoint sets of job 1"), b"checkpoint set 7")
        self.assertIn("  key: " + base64.b64encode(key).decode() + "\n", out)
        described = json.loads(base64.b64decode(re.search("exported: (.*)", out)[1]))
        self.assertEqual((described["uid"], described["set"]["id"]), ("1", 7))
        self.assertNotIn(base64.b64encode(seed).decode(), out)
        for words, text in ((["--set", "5"], "has no checkpoint set 5; it has 6, 7"), (["--set", "x"], "must be a whole number")):
            status, out, err = self.run_it("checkpoints", "weather", "--export", *words)
            self.assertNotEqual(status, 0)
            self.assertEqual(out, "")
            self.assertIn(text, err)
        self.assertIn("belong to --export", self.run_it("checkpoints", "weather", "--set", "6")[2])
        for secrets, text in ((items(authority(seed), authority(b"o" * 32)), "several operators"), (items(authority(b"short")), "holds a seed"),
                              (items(authority(seed, "bsp-tls")), "holds a seed"), (items(), "holds a seed"), ("text", "no JSON object")):
            self.answer("secrets", secrets)
            status, out, err = self.run_it("checkpoints", "weather", "--export")
            self.assertEqual((status, out), (1, ""), err)
            self.assertIn(text, err)
        self.answer("secrets", items(authority(seed)))
        self.assertEqual(self.run_it("checkpoints", "weather", "--export", "--operator", "bsp-system")[0], 0)
        self.assertEqual(self.calls()[-1][-1], "--namespace=bsp-system")
        (self.here / "secrets").unlink()
        self.assertIn("only administrators of the operator can read", self.run_it("checkpoints", "weather", "--export")[2])

    def test_passes_namespace_context_and_kubeconfig_on(self):
        for words in (["explain", "weather", "-n", "science", "--context", "a b;c", "--kubeconfig", "/x y"],
                      ["-n", "science", "--context=a b;c", "--kubeconfig", "/x y", "explain", "weather"]):
            (self.here / "calls").write_text("")
            status, out, err = self.run_it(*words)
            self.assertEqual((status, err), (0, ""), out)
            access = ["--namespace=science", "--context=a b;c", "--kubeconfig=/x y"]
            self.assertEqual(self.calls(), [["get", JOBS, "weather", "-o", "json", *access], ["get", MIGRATIONS, "-o", "json", *access]])

    def test_uses_kubectls_own_defaults(self):
        self.run_it("explain", "weather")
        self.assertEqual(self.calls(), [["get", JOBS, "weather", "-o", "json"], ["get", MIGRATIONS, "-o", "json", "--namespace=science"]])

    def test_explains_and_shows_only_the_jobs_migrations(self):
        status, out, _ = self.run_it("explain", "weather")
        self.assertEqual(status, 0)
        self.assertIn("science/weather: Running, superstep 40", out)
        self.assertIn("rank 1 slow→fast: RolledBack", out)
        self.assertNotIn("rank 0 slow→fast", out)
        self.assertNotIn("\033", out)

    def test_top_prints_one_frame_without_control_codes(self):
        status, out, _ = self.run_it("top", "weather", "--once")
        self.assertEqual(status, 0)
        self.assertIn("rank 1", out)
        self.assertNotIn("\033", out)
        self.assertEqual(len(self.calls()), 2)

    def test_top_ends_with_the_job_and_survives_a_server_that_doesnt_answer(self):
        with subprocess.Popen([BIN / "kubectl-bsp", "top", "weather"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
            self.assertIn("Running", top.stdout.readline())
            self.answer("down", "")
            while "no answer: The connection to the server was refused?[2J" not in (line := top.stdout.readline()):
                self.assertTrue(line, "top ended")
            self.answer(JOBS, json.dumps({**JOB, "status": {**JOB["status"], "phase": "Succeeded"}}))
            (self.here / "down").unlink()
            out, err = top.communicate(timeout=60)
            self.assertIn("Succeeded", out)
            self.assertEqual((top.returncode, err), (0, ""))

    def test_top_ends_when_the_job_is_deleted(self):
        with subprocess.Popen([BIN / "kubectl-bsp", "top", "weather"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as top:
            self.assertIn("Running", top.stdout.readline())
            (self.here / JOBS).unlink()
            _, err = top.communicate(timeout=60)
            self.assertEqual((top.returncode, err), (1, "kubectl-bsp: Error from server (NotFound): bspjobs.migbsp.io not found\n"))

    def test_top_redraws_in_place_on_a_terminal(self):
        leader, follower = pty.openpty()
        with subprocess.Popen([BIN / "kubectl-bsp", "top", "weather"], env=self.env, stdout=follower, stderr=subprocess.PIPE) as top:
            os.close(follower)
            text = b""
            while text.count(b"\033[H") < 2:
                text += os.read(leader, 4096)
            top.terminate()
            top.wait(timeout=30)
        os.close(leader)
        self.assertTrue(text.startswith(b"\033[2J\033[H"))
        self.assertNotIn(b"\033", text.replace(b"\033[2J", b"", 1).replace(b"\033[H", b"").replace(b"\033[K", b"").replace(b"\033[0J", b""))

    def test_draws_a_timeline(self):
        status, out, _ = self.run_it("timeline", "weather")
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith("<svg ") and out.endswith("</svg>\n"), out)
        status, _, err = self.run_it("timeline", "weather", "--record", "/nowhere.jsonl")
        self.assertEqual(status, 1)
        self.assertIn("/nowhere.jsonl", err)

    def test_migrate_creates_a_rank_migration(self):
        status, out, _ = self.run_it("migrate", "weather", "1", "--to", "fast")
        self.assertEqual((status, out), (0, "rankmigration.migbsp.io/it created?[2J\n"))
        self.assertEqual(self.calls()[-1], ["create", "-f", "-"])
        created = json.loads((self.here / "created").read_text())
        self.assertEqual((created["kind"], created["spec"]["job"], created["spec"]["rank"], created["spec"]["targetSet"]),
                         ("RankMigration", "weather", 1, "fast"))
        self.assertEqual(created["metadata"]["namespace"], "science")
        for answers in (True, False):
            with self.subTest(may_read_nodes=answers):
                (self.here / "nodes").write_text(json.dumps({"kind": "Node", "metadata": {"name": "f-0"}}) if answers else "forbidden")
                self.assertEqual(self.run_it("migrate", "weather", "1", "--to-node", "f-0", "-n", "science")[0], 0)
                self.assertEqual(json.loads((self.here / "created").read_text())["spec"]["targetNode"], "f-0")
                self.assertIn(["get", "nodes", "f-0", "-o", "json"], self.calls())
                (self.here / "created").unlink()

    def test_migrate_to_any_other_node(self):
        self.assertEqual(self.run_it("migrate", "weather", "1", "--to-node", "*")[0], 0)
        self.assertEqual(json.loads((self.here / "created").read_text())["spec"]["targetNode"], "*")
        self.assertFalse([call for call in self.calls() if "nodes" in call])

    def test_migrate_waits_for_the_end(self):
        for phase, code in (("RolledBack", 1), ("Succeeded", 0)):
            self.answer(MIGRATIONS, json.dumps({**MIGRATION, "status": {**MIGRATION["status"], "phase": phase}}))
            status, out, err = self.run_it("migrate", "weather", "1", "--to", "fast", "--wait")
            self.assertEqual((status, out), (code, f"rankmigration.migbsp.io/it created?[2J\n{phase}: ?[2Jthe target is gone\n"), err)
            name = json.loads((self.here / "created").read_text())["metadata"]["name"]
            self.assertEqual(self.calls()[-1], ["get", MIGRATIONS, name, "-o", "json"])

    def test_migrate_names_what_exists(self):
        for words, status, text in ((["2", "--to", "fast"], 2, "job weather has no rank 2, only 0 to 1"), (["1", "--to", "gpu"], 2, "known: fast, slow"),
                                    (["1", "--to", "slow"], 1, "already in Set slow"),
                                    (["1", "--to-node", "f-9"], 2, "there is no node f-9"), (["1", "--to-node", "f*"], 2, "NODE \"f*\""), (["x", "--to", "fast"], 2, "RANK \"x\""), (["1"], 2, "give either --to or --to-node"),
                                    (["1", "--to", "fast", "--to-node", "f-0"], 2, "give either --to or --to-node")):
            with self.subTest(words):
                got, _, err = self.run_it("migrate", "weather", *words)
                self.assertEqual(got, status, err)
                self.assertIn(text, err)
        (self.here / "nodes").write_text("{}")
        self.assertIn("rank 1 is already on node s-1", self.run_it("migrate", "weather", "1", "--to-node", "s-1")[2])
        self.assertFalse((self.here / "created").exists())

    def test_drain_plan(self):
        node = {"metadata": {"name": "s-0", "labels": {"migbsp.io/set": "slow"}}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "9"}}}
        free = {"metadata": {"name": "f-0", "labels": {"migbsp.io/set": "fast"}}, "status": node["status"]}
        self.answer("nodes", items(node, free))
        self.answer("pods", items())
        self.answer(JOBS, items(JOB, {**JOB, "metadata": {"name": "newer", "namespace": "n"}, "spec": {**JOB["spec"], "unheardOf": 1}}))
        status, out, err = self.run_it("drain-plan", "s-0", "--context", "c")
        self.assertEqual(status, 0, err)
        self.assertIn("rank 0 (slow) can go to f-0 (fast, another Set)", out)
        self.assertIn("BSPJob n/newer is left out", err)
        self.assertEqual([c[1] for c in self.calls()], ["nodes", "pods", JOBS])
        self.assertTrue(all(c[-1] == "--context=c" for c in self.calls()))
        status, _, err = self.run_it("drain-plan", "s-9")
        self.assertEqual(status, 2)
        self.assertIn("there is no node s-9", err)

    def test_passes_kubectls_errors_through(self):
        (self.here / JOBS).unlink()
        for words in (["explain", "weather"], ["top", "weather"], ["timeline", "weather"], ["migrate", "weather", "0", "--to", "fast"]):
            with self.subTest(words):
                status, out, err = self.run_it(*words)
                self.assertEqual((status, out), (1, ""))
                self.assertIn("Error from server (NotFound): bspjobs.migbsp.io not found\n", err)
                self.assertIn("kubectl-bsp: kubectl get bspjobs.migbsp.io failed (exit status 7)", err)

    def test_garbage_from_kubectl_is_an_error(self):
        for text in ("", "no JSON \033[2J\n", "[1]", "{", "null"):
            with self.subTest(text):
                self.answer(JOBS, text)
                status, out, err = self.run_it("explain", "weather")
                self.assertEqual((status, out), (1, ""))
                self.assertIn("printed no JSON object", err)
                self.assertNotIn("\033", err)
        self.answer(JOBS, json.dumps({"kind": "Pod", "apiVersion": "v1"}))
        self.assertEqual(self.run_it("explain", "weather")[0], 2)

    def test_no_kubectl(self):
        status, _, err = self.run_it("explain", "weather", env={**self.env, "PATH": "/nonexistent"})
        self.assertEqual(status, 1)
        self.assertIn("kubectl is not installed or not in PATH", err)

    def test_odd_names_dont_reach_kubectl(self):
        for name in ("-A", "--all", "a,b", "pod/x", "", "x y", "\033[2J"):
            with self.subTest(name):
                status, _, err = self.run_it("explain", name)
                self.assertEqual(status, 2, err)
                self.assertNotIn("\033", err)
        self.assertFalse((self.here / "calls").exists())

    def test_help_lists_every_option(self):
        access = "-n --namespace --context --kubeconfig"
        for command, options in {"explain": access, "top": access + " --once", "timeline": access + " --record", "migrate": access + " --to --to-node --wait", "drain-plan": access}.items():
            with self.subTest(command):
                status, out, _ = self.run_it(command, "--help")
                self.assertEqual(status, 0)
                self.assertIn("usage: kubectl bsp " + command, out)
                self.assertEqual(set(options.split()) - set(out.replace(",", " ").split()), set(), out)
        for words, status in (([], 0), (["--help"], 0), (["version"], 0), (["tpo"], 2), (["-n"], 2)):
            self.assertEqual(self.run_it(*words)[0], status, words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
