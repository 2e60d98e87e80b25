#!/bin/bash
# fractal_test.sh PROGRAM: tests its command line and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

expect 2 "--range: invalid value '1'; expected a whole number from 2 to 32" "$program" --range 1
expect 2 "--decompress requires --output, the file for the picture" "$program" --decompress /dev/null
expect 2 "--decompress /dev/null: it is not a compressed picture" "$program" --decompress /dev/null --output "$dir/x"
expect 2 "--image /no/such/file: it can't be opened" "$run" 3 "$program" --image /no/such/file
expect 2 "--image /: it can't be read; is it a directory?" "$program" --sequential --image /
expect 2 "--image /dev/null: it is not a binary PGM" "$program" --sequential --image /dev/null
expect 1 "--output /no/such/dir/file: No such file" "$program" --sequential --width 40 --height 40 --output /no/such/dir/file
expect 0 "usage: fractal" "$program" --help

# One process and three write the same code and picture, and so does the code alone; another seed gives another picture.
small=(--width 90 --height 70 --range 4)
expect 0 "OK code" "$program" --sequential "${small[@]}" --output "$dir/alone" --code "$dir/alone.code" --original "$dir/original"
expect 0 "OK code" "$run" 3 "$program" "${small[@]}" --output "$dir/three" --code "$dir/three.code"
expect 0 "" cmp "$dir/alone" "$dir/three"
expect 0 "" cmp "$dir/alone.code" "$dir/three.code"
expect 0 "@" "$program" --decompress "$dir/three.code" --output "$dir/decompressed"
expect 0 "" cmp "$dir/alone" "$dir/decompressed"
expect 0 "OK code" "$program" --sequential "${small[@]}" --seed 2 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
# A picture from a file compresses like the generated one.
expect 0 "equal to the sequential program" "$run" 2 "$program" --image "$dir/original" --range 4 --output "$dir/read" --verify
expect 0 "" cmp "$dir/alone" "$dir/read"
exit $((failures > 0))
