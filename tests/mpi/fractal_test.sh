#!/bin/bash
# fractal_test.sh PROGRAM: its command line, and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

expect 2 "--range: '1' is not a value it can take: give a whole number from 2 to 32" "$program" --range 1
expect 2 "--decompress: it goes with --output: give a file" "$program" --decompress /dev/null
expect 2 "--decompress /dev/null: it is no compressed picture" "$program" --decompress /dev/null --output "$dir/x"
expect 2 "--image /no/such/file: it cannot be opened" "$run" 3 "$program" --image /no/such/file
expect 2 "--image /: it cannot be read: is it a directory?" "$program" --sequential --image /
expect 2 "--image /dev/null: it is no binary PGM" "$program" --sequential --image /dev/null
expect 1 "--output /no/such/dir/file: No such file" "$program" --sequential --width 40 --height 40 --output /no/such/dir/file
expect 0 "usage: fractal" "$program" --help

# The same code and picture in the files of one process and of three, and from the code alone; another one with another seed.
small=(--width 90 --height 70 --range 4)
expect 0 "OK code" "$program" --sequential "${small[@]}" --output "$dir/alone" --code "$dir/alone.code" --original "$dir/original"
expect 0 "OK code" "$run" 3 "$program" "${small[@]}" --output "$dir/three" --code "$dir/three.code"
expect 0 "" cmp "$dir/alone" "$dir/three"
expect 0 "" cmp "$dir/alone.code" "$dir/three.code"
expect 0 "@" "$program" --decompress "$dir/three.code" --output "$dir/decompressed"
expect 0 "" cmp "$dir/alone" "$dir/decompressed"
expect 0 "OK code" "$program" --sequential "${small[@]}" --seed 2 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
# A picture that is read is compressed as the generated one.
expect 0 "equal to the sequential program" "$run" 2 "$program" --image "$dir/original" --range 4 --output "$dir/read" --verify
expect 0 "" cmp "$dir/alone" "$dir/read"
exit $((failures > 0))
