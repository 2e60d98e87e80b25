#!/bin/bash
# smith_waterman_test.sh PROGRAM: tests its command line and that its own checks can fail.
set -u
program=$1
. "$(dirname "$0")/expect.sh"

expect 2 "--rows: invalid value '0'; expected a whole number from 1 to 30000" "$program" --rows 0
expect 2 "--gap: invalid value 'linear'; expected affine or logarithmic" "$program" --gap linear
expect 2 "--b requires --a: specify both files" "$program" --b /dev/null
expect 2 "--a /no/such/file: it can't be opened" "$program" --sequential --a /no/such/file --b /dev/null
expect 2 "--b /dev/null: it contains no sequence" "$run" 3 "$program" --a /no/such/file --b /dev/null
expect 1 "--output /no/such/dir/file: No such file" "$program" --sequential --output /no/such/dir/file
expect 0 "usage: smith_waterman" "$program" --help

# One process and three write the same alignment, from files too; another seed gives another one.
small=(--rows 120 --columns 90)
expect 0 "OK matrix" "$program" --sequential "${small[@]}" --output "$dir/alone"
expect 0 "OK matrix" "$run" 3 "$program" "${small[@]}" --blocks 7 --output "$dir/three"
expect 0 "" cmp "$dir/alone" "$dir/three"
expect 0 "OK matrix" "$program" --sequential "${small[@]}" --seed 2 --output "$dir/other"
expect 1 "differ" cmp "$dir/alone" "$dir/other"
printf '>a\nTGTTACGG\n>more\nTT\n' >"$dir/a.fasta"
printf '>b\nGGTT\ngacta\n' >"$dir/b.fasta"
expect 0 "score 13: a[2..6] with b[2..7], 6 columns" "$run" 2 "$program" --a "$dir/a.fasta" --b "$dir/b.fasta" --match 3 \
  --mismatch -3 --gap-open 2 --gap-extend 2 --verify
expect 0 "a      2 GTT-AC" "$run" 5 "$program" --a "$dir/a.fasta" --b "$dir/b.fasta" --match 3 --mismatch -3 --gap-open 2 \
  --gap-extend 2 --verify
printf 'AAA' >"$dir/a.fasta"
printf 'CC' >"$dir/b.fasta"
expect 0 "score 0" "$run" 2 "$program" --a "$dir/a.fasta" --b "$dir/b.fasta" --verify
exit $((failures > 0))
