#!/bin/bash
# lattice_boltzmann_test.sh PROGRAM: its command line, and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

small=(--width 40 --height 20 --supersteps 30)
expect 2 "--widht: unknown option" "$program" --widht 3
expect 2 "--width: 'x' is not a value it can take" "$program" --width x
expect 2 "--work-factor: '1=0.5'" "$program" --work-factor 1=0.5
expect 2 "--supersteps: its value is missing: give a whole number" "$program" --supersteps
expect 0 "usage:" "$program" --help
expect 1 "--output /no/such/dir/field: No such file" "$program" --sequential "${small[@]}" --output /no/such/dir/field
expect 2 "--width 2 is less than the 3 ranks" "$run" 3 "$program" --width 2

# The same field in the files of one process and of three; another one with another force.
expect 0 "OK field" "$program" --sequential "${small[@]}" --output "$dir/alone"
expect 0 "OK field" "$run" 3 "$program" "${small[@]}" --output "$dir/three"
expect 0 "" cmp "$dir/alone" "$dir/three"
expect 0 "OK field" "$program" --sequential "${small[@]}" --force 2e-6 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
expect 0 "57600" stat -c %s "$dir/alone"  # 40 * 20 cells, 9 doubles each
exit $((failures > 0))
