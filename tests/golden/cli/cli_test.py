#!/usr/bin/env python3
"""cli_test.py BIN: command lines as users type them; the exit status of each, and what it prints.

Nothing listens and no store exists where these commands look, so a command line that is right ends with 1 and says what it
couldn't reach; one that is wrong ends with 2 and names the mistake and the remedy.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv.pop()) / "bsp-operator"
TREE = pathlib.Path(__file__).parents[3]
JOB = str(TREE / "examples/lattice-boltzmann.yaml")
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""

# Every option of every command, as --help must list it.
OPTIONS = {
    "controller": "--kubeconfig --context -n --namespace --leader-elect --lease-namespace --lease-name --metrics-address"
                  " --health-address --evictions-address --workers --record-directory --runtime-image --runtime-pull-policy --runtime-delivery"
                  " --max-moves --max-moves-per-set --instance-prices --kueue --start-timeout --target-timeout --exchange --exchange-members"
                  " --exchange-listen --exchange-tls --isolate-jobs --user-namespaces",
    "submit": "-f --filename --kubeconfig --context -n --namespace --wait --timeout --delete",
    "before-uninstall": "--kubeconfig --context --namespaces --delete --timeout",
    "advise": "-f --filename --heuristic --x --horizon --objective --prices --max-slowdown --min-gain --cooldown --max-moves --alpha --d --omega --delta"
              " --beta -o --output --brief",
    "check": "-f --filename -o --output --seconds --start-seconds --move-seconds --cpu -n --namespace --store",
    "convert": "-f --filename --check --seconds --start-seconds --move-seconds --cpu -n --namespace --store",
    "simulate": "-f --file --platform --pools --prices --application --heuristic --mig --call --timeline --record --all -o --output",
    "local resume": "--pools --prices --mode --record --summary --timeline --plain -n --namespace --store",
    "local run": "-f --filename --pools --prices --mode --record --summary --timeline --checkpoints --plain -n --namespace --store",
    "local get": "-o --output -w --watch -n --namespace --store",
    "local describe": "-n --namespace --store",
    "local explain": "--job -n --namespace --store",
    "local top": "--once --job -n --namespace --store",
    "local timeline": "--record --job -n --namespace --store",
    "local logs": "-f --follow --job -n --namespace --store",
    "local migrate": "--to --to-node --job --wait -n --namespace --store",
    "local checkpoint": "--job --wait -n --namespace --store",
    "local checkpoints": "--job -n --namespace --store",
    "local delete": "-n --namespace --store",
}

# Command line, exit status, text in what it prints. @ stands for an empty directory, J for a manifest, K for a kubeconfig of
# a server that isn't there.
LINES = [
    ("", 0, "usage: bsp-operator"),
    ("help", 0, "usage: bsp-operator"),
    ("--help", 0, "usage: bsp-operator"),
    ("-h", 0, "usage: bsp-operator"),
    ("version", 0, "bsp-operator 0."),
    ("nonsense", 2, "unknown command \"nonsense\""),
    ("simulat", 2, "did you mean simulate?"),
    ("local", 2, "usage: bsp-operator"),
    ("local nonsense", 2, "usage: bsp-operator"),
    ("local gt", 2, "did you mean local get?"),

    ("check", 2, "give either IMAGE or -f JOB.yaml"),
    ("check localhost/none -f J", 2, "give either IMAGE or -f JOB.yaml"),
    ("check -f @/none.yaml", 1, "none.yaml"),
    ("check localhost/none --seconds 0", 2, "--seconds \"0\": must be a number from 1 to 3600"),
    ("check localhost/none --secnds 3", 2, "did you mean --seconds?"),
    ("check -o xml localhost/none", 2, "must be text or json"),
    # What follows the program's name is the program's.
    ("check -f J image program --seconds 0 -o=xml", 2, "give either IMAGE or -f JOB.yaml"),
    ("convert", 2, "-f"),
    ("convert -f @/none.yaml", 1, "none.yaml"),
    ("convert -f J", 2, "holds no MPIJob"),
    (f"convert -f {TREE}/tests/golden/convert/hydra.yaml", 4, "rebuild: "),
    (f"convert --check -f {TREE}/tests/golden/convert/template.yaml", 0, "not run: fill in "),
    ("convert --check --seconds 0 -f J", 2, "must be a number from 1 to 3600"),

    # The forms of an option. Of one given twice the last counts.
    ("local get --store @ -oyaml", 1, "nothing runs in namespace default"),
    ("local get --store @ -o yaml", 1, "nothing runs in namespace default"),
    ("local get --store @ -o=yaml", 1, "nothing runs in namespace default"),
    ("local get --store @ --output=yaml", 1, "nothing runs in namespace default"),
    ("local get --store @ --output yaml -w=false", 1, "nothing runs in namespace default"),
    ("local get --store @ --watch=true -o bad -o wide", 1, "nothing runs in namespace default"),
    ("local get --store @ --watch=maybe", 2, "-w \"maybe\": must be true or false"),
    ("local get --store @ --output=", 2, "-o \"\": must be table, wide, json, yaml or name"),
    ("local get --store @ -n a -nb", 1, "nothing runs in namespace b"),
    ("local get --store=@ pods", 1, "nothing runs in namespace default"),
    ("local get --store=@ pods NAME", 1, "nothing runs in namespace default"),
    ("local get --store=@ pod/NAME", 1, "nothing runs in namespace default"),
    ("local get --store=@ pods NAME more", 2, "unexpected argument \"more\""),
    ("local get --store=@ pds", 2, "pods"),
    ("local get --store=@ -o xml", 2, "xml"),
    ("local get --store=@ --namespace ../x", 2, "is not a namespace's name"),
    ("local get --stre=@", 2, "unknown option --stre; did you mean --store?"),
    ("local get -o", 2, "-o needs a value"),

    ("local describe --store=@ bspjob NAME", 1, "nothing runs in namespace default"),
    ("local describe --store=@ NAME", 2, "usage: bsp-operator local describe"),
    ("local describe --store=@ pod NAME", 2, "local get pod NAME -o yaml"),
    ("local explain --store=@ --job j", 1, "nothing runs in namespace default"),
    ("local explain --store=@ j", 2, "unexpected argument \"j\""),
    ("local top --store=@ --once", 1, "nothing runs in namespace default"),
    ("local top --store=@ --onec", 2, "did you mean --once?"),
    ("local timeline --store=@ --record r", 1, "nothing runs in namespace default"),
    ("local logs --store=@ 0 --job j -f", 1, "nothing runs in namespace default"),
    ("local logs --store=@ 0 --follow", 1, "nothing runs in namespace default"),
    ("local logs --store=@", 2, "usage: bsp-operator local logs"),
    ("local logs --store=@ 0 1", 2, "usage: bsp-operator local logs"),
    ("local logs --store=@ first", 2, "RANK \"first\": must be a whole number"),
    ("local migrate --store=@ 0 --to fast --job j --wait", 1, "nothing runs in namespace default"),
    ("local migrate --store=@ 0 --to-node fast-0", 1, "nothing runs in namespace default"),
    ("local migrate --store=@ 0", 2, "usage: bsp-operator local migrate"),
    ("local migrate --store=@ 0 --to a --to-node b", 2, "give either --to or --to-node"),
    ("local migrate --store=@ --to a", 2, "usage: bsp-operator local migrate"),
    ("local migrate --store=@ 0x --to a", 2, "0x"),
    ("local checkpoint --store=@ --job j --wait", 1, "nothing runs in namespace default"),
    ("local checkpoint --store=@ j", 2, "unexpected argument \"j\""),
    ("local checkpoints --store=@", 1, "nothing runs in namespace default"),
    ("local checkpoints --store=@ --wait", 2, "unknown option --wait"),
    ("local delete --store=@ NAME", 1, "nothing runs in namespace default"),
    ("local delete --store=@ bspjob/NAME", 1, "nothing runs in namespace default"),
    ("local delete --store=@ rankmigration NAME", 1, "nothing runs in namespace default"),
    ("local delete --store=@", 2, "usage: bsp-operator local delete"),
    ("local delete --store=@ a b c", 2, "usage: bsp-operator local delete"),
    ("local delete --store=@ node NAME", 2, "usage: bsp-operator local delete"),
    ("local run --pools a=1x1", 2, "-f"),
    ("local run -f J", 2, "--pools is missing: the Sets"),
    ("local run -f J --pools a=1x1 J", 2, "lattice-boltzmann.yaml"),
    ("local run -f /nowhere.yaml --pools a=1x1", 1, "/nowhere.yaml"),
    ("local run --filename=/nowhere.yaml --pools=a=1x1 --mode Off --record r --summary s --timeline t --plain -n x --store @", 1,
     "/nowhere.yaml"),
    ("local run -f J --pools a=1x1 --record -", 2, "--record"),
    ("local run -f J --pools a=1x1 --prices a=0", 2, "\"a=0\" must be NAME=PRICE with each name once and a price above 0"),
    ("local run -f J --pools a=1x1 --prices b=1", 2, "--prices: --pools has no b"),
    ("local run -f - --pools a=1x1", 2, "standard input"),
    ("submit -f - --kubeconfig K", 2, "standard input"),
    ("check -f -", 2, "standard input"),
    ("simulate -f - --pools a=1x1 --application lu", 2, "standard input"),
    ("local run -f J --pools a=0x1", 2, "--pools: \"a=0x1\": a pool has 1 to 1024 nodes"),
    ("local run -f J --pools a=1x1 --mode Fast", 2, "--mode"),
    (f"local run -f {TREE}/tests/golden/cli/exported.yaml --pools a=1x1", 2, "spec.restoreFrom.exported: needs a cluster"),

    ("submit -f /nowhere.yaml --kubeconfig K --context none -n a --wait --delete --timeout 5", 1, "/nowhere.yaml"),
    ("submit -f J --kubeconfig K", 1, "127.0.0.1:1"),
    ("submit", 2, "-f"),
    ("submit -f J --delete", 2, "--delete goes with --wait"),
    ("submit -f J --timeout 0", 2, "from 1 to 1000000"),
    ("submit -f J more", 2, "more"),
    ("before-uninstall --kubeconfig K", 1, "127.0.0.1:1"),
    ("before-uninstall --kubeconfig K --context none --namespaces a,b --delete --timeout 5", 1, "127.0.0.1:1"),
    ("before-uninstall --namespaces=", 2, "must be namespaces such as science,maths, or all"),

    ("advise -f /nowhere.jsonl --heuristic Top,AutoMig --x .5 --horizon Superstep --min-gain 0.1 --cooldown 2 --max-moves 3"
     " --alpha 4 --d .5 --omega 3 --delta 1 --beta 0.5 -o json --brief", 1, "/nowhere.jsonl"),
    ("advise --filename=/nowhere.jsonl --heuristic all --output text", 1, "/nowhere.jsonl"),
    ("advise -f -", 2, "standard input"),

    ("simulate -f J --pools slow=2x0.2,fast=4x0.4 --application lattice-boltzmann:supersteps=9 --heuristic Top --mig 0.1"
     " --call 0 --timeline @/t.svg --record @/r.jsonl --all -o text", 0, "(iii) with moves"),
    ("simulate --help", 0, "smith-waterman"),
    ("simulate -f J --pools a=1x1 --application lu -o xml", 2, "xml"),
    ("simulate --nonsense", 2, "unknown option --nonsense"),

    ("controller --kubeconfig /nowhere", 1, "/nowhere"),
    ("controller --help", 0, "--leader-elect"),
    ("controller job.yaml", 2, "unexpected argument \"job.yaml\""),
    ("controller --leader-elct", 2, "did you mean --leader-elect?"),
]


def run(line):
    with tempfile.TemporaryDirectory() as empty, tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(KUBECONFIG)
        config.flush()
        places = {"J": JOB, "K": config.name}
        words = [places.get(word, word).replace("@", empty) for word in line.split()]
        done = subprocess.run([BIN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)
        return done.returncode, done.stdout


class CommandLines(unittest.TestCase):
    def test_each_ends_with_its_status_and_says_why(self):
        for line, status, text in LINES:
            with self.subTest(line):
                got, output = run(line)
                self.assertEqual(got, status, output)
                self.assertIn(text, output)

    def test_output_that_is_lost_is_an_error(self):
        manifest = str(TREE / "tests/golden/convert/plain.yaml")
        simulation = ["simulate", "-f", JOB, "--pools", "slow=2x0.2,fast=2x0.4", "--application", "lattice-boltzmann:supersteps=9"]
        for words in (["version"], ["--help"], ["local", "get", "--help"], ["convert", "-f", manifest], simulation, [*simulation, "-o", "json"]):
            with self.subTest(" ".join(words)):
                with open("/dev/full", "w") as full:
                    done = subprocess.run([BIN, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stderr)
                # Of a long output, only what was written last has a reason.
                self.assertRegex(done.stderr, "writing standard output: (No space left on device|not all of it could be written)")
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", BIN, *words], stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, "writing standard output: (Bad file descriptor|not all of it could be written)")

    def test_a_converted_job_goes_on_by_standard_input(self):
        converted = subprocess.run([BIN, "convert", "-f", str(TREE / "tests/golden/convert/plain.yaml")], capture_output=True, timeout=60)
        done = subprocess.run([BIN, "simulate", "-f", "-", "--pools", "a=9x1", "--application", "lattice-boltzmann:supersteps=9"],
                              input=converted.stdout, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_check_that_is_impossible_here_is_an_error(self):
        done = subprocess.run([BIN, "convert", "--check", "-f", str(TREE / "tests/golden/convert/plain.yaml")], capture_output=True,
                              text=True, env={"PATH": "/nowhere"}, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("kind: BSPJob", done.stdout)
        self.assertRegex(done.stderr, r"(?m)^bsp-operator: --check: .*(podman is not installed|must run as root)")

    def test_no_file_takes_the_place_of_a_closed_stream(self):
        with tempfile.TemporaryDirectory() as empty:
            record = pathlib.Path(empty) / "record"
            subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BIN, "simulate", "-f", JOB, "--pools", "slow=2x0.2,fast=2x0.4",
                            "--application", "lattice-boltzmann:supersteps=9", "--record", str(record)], timeout=60)
            for line in record.read_text().splitlines():
                self.assertTrue(line.startswith("{"), line)

    def test_help_lists_every_option(self):
        for command, options in OPTIONS.items():
            with self.subTest(command):
                status, output = run(command + " --help")
                self.assertEqual(status, 0, output)
                self.assertIn("usage: bsp-operator " + command, output)
                words = set(output.replace(",", " ").replace("=", " ").split())
                self.assertEqual(set(options.split()) - words, set(), output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
