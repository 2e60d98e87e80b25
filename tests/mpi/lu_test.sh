#!/bin/bash
# lu_test.sh PROGRAM: tests its command line and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

expect 2 "--order: invalid value '0'; expected a whole number from 1 to 50000" "$program" --order 0
expect 2 "--block: invalid value 'big'; expected a whole number" "$program" --block big
expect 2 "--zero-column: the matrix has no such column; the maximum is --order" "$program" --order 3 --zero-column 4
expect 2 "--process-rows 2 does not divide the 3 ranks; use a divisor" "$run" 3 "$program" --process-rows 2
expect 1 "--output /no/such/dir/file: No such file" "$program" --sequential --order 20 --output /no/such/dir/file
expect 0 "usage: lu" "$program" --help
expect 1 "singular: column 7 has no pivot" "$program" --sequential --order 20 --zero-column 7
expect 1 "singular: column 1 has no pivot" "$run" 4 "$program" --order 20 --zero-column 1 --block 3
expect 1 "singular: column 20 has no pivot" "$run" 3 "$program" --order 20 --zero-column 20 --block 3

# One process and four write the same factors, in any grid; another seed gives others.
expect 0 "OK factors" "$program" --sequential --order 70 --output "$dir/alone"
expect 0 "OK factors" "$run" 4 "$program" --order 70 --block 4 --output "$dir/four"
expect 0 "4 ranks in a grid of 1 x 4" "$run" 4 "$program" --order 70 --block 9 --process-rows 1 --output "$dir/row"
expect 0 "" cmp "$dir/alone" "$dir/four"
expect 0 "" cmp "$dir/alone" "$dir/row"
expect 0 "39200" stat -c %s "$dir/alone"  # 70 * 70 doubles
expect 0 "OK factors" "$program" --sequential --order 70 --seed 2 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
exit $((failures > 0))
