#!/bin/sh
# make_root.sh DIR PROGRAM...   DIR/root.tar: the smallest user image that can run these programs.
set -eu
dir=$1
shift
rm -rf "$dir/root"
mkdir -p "$dir/root/etc" "$dir/root/bin" "$dir/root/lib64" "$dir/root/tmp" "$dir/root/run" \
  "$dir/root/proc" "$dir/root/sys" "$dir/root/dev"
chmod 1777 "$dir/root/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1001:100:User:/home/user:/bin/sh\n' >"$dir/root/etc/passwd"
printf 'root:x:0:\nusers:x:100:\n' >"$dir/root/etc/group"
# Files of the image for programs/files.c: some in a directory of the program's user, and a world-writable one in a
# directory of root.
image=$dir/root/work/image
mkdir -p "$image/directory" "$image/replaced" "$image/emptied" "$image/deep/er" "$dir/root/roots" "$dir/root/shared"
for file in changed truncated deleted mode moved untouched file directory/a directory/b replaced/a emptied/a emptied/b \
  deep/er/there; do
  basename "$file" >"$image/$file"
done
printf image >"$image/read"
echo writable >"$dir/root/roots/writable"
chmod 666 "$dir/root/roots/writable"
chmod 777 "$dir/root/shared"
cp "$@" "$dir/root/"
cp /bin/sh "$dir/root/bin/sh"
for binary in /bin/sh "$@"; do
  { ldd "$binary" 2>/dev/null || true; } | sed -n -e 's/.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) .*/\1/p'
done | sort -u | while read -r library; do
  mkdir -p "$dir/root$(dirname "$library")"
  cp -L "$library" "$dir/root$library"
done
tar -C "$dir/root" --owner=0 --group=0 --numeric-owner --exclude=./work -cf "$dir/root.tar" .
tar -C "$dir/root" --owner=1000 --group=1000 --numeric-owner -rf "$dir/root.tar" ./work
