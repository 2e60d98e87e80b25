# Sourced by the command-line tests.
run=$(dirname "$0")/mpirun.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

# expect STATUS TEXT COMMAND…: the command exits with STATUS and its output contains TEXT.
expect() {
  local status=$1 text=$2 output
  shift 2
  output=$("$@" 2>&1)
  local got=$?
  if [ $got -ne "$status" ] || ! grep -qF -- "$text" <<<"$output"; then
    printf 'FAILED: %s\n  expected status %s and "%s", got status %s and:\n%s\n' "$*" "$status" "$text" "$got" "$output"
    failures=$((failures + 1))
  fi
}
