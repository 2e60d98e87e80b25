#!/bin/bash
# lattice_boltzmann_test.sh PROGRAM: tests its command line and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

small=(--width 40 --height 20 --supersteps 30)
expect 2 "--widht: unknown option" "$program" --widht 3
expect 2 "--width: invalid value 'x'; expected" "$program" --width x
expect 2 "--work-factor: invalid value '1=0.5'" "$program" --work-factor 1=0.5
expect 2 "--supersteps: missing value; expected a whole number" "$program" --supersteps
expect 0 "usage:" "$program" --help
expect 1 "--output /no/such/dir/field: No such file" "$program" --sequential "${small[@]}" --output /no/such/dir/field
expect 2 "--width 2 is less than the 3 ranks" "$run" 3 "$program" --width 2

# One process and three write the same field; another force gives another field.
expect 0 "OK field" "$program" --sequential "${small[@]}" --output "$dir/alone"
expect 0 "OK field" "$run" 3 "$program" "${small[@]}" --output "$dir/three"
expect 0 "" cmp "$dir/alone" "$dir/three"
expect 0 "OK field" "$program" --sequential "${small[@]}" --force 2e-6 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
expect 0 "57600" stat -c %s "$dir/alone"  # 40 * 20 cells, 9 doubles each

# With --until it ends at the next superstep, and its field is that of as many supersteps as it reports.
expect 0 ", 1 supersteps, 2 ranks, equal" "$run" 2 "$program" "${small[@]}" --until "$program" --check
expect 0 ", 30 supersteps, 2 ranks, equal" "$run" 2 "$program" "${small[@]}" --until "$dir/nothing" --check
exit $((failures > 0))
