#!/bin/bash
# A release: archives depend on nothing but their content, and the local mode loads its images once.
set -euo pipefail
images=$(dirname "$(readlink -f "$0")")/../../images
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
. "$images/make.sh"

fails() { echo "$*" >&2; exit 1; }

# The same files, written in another order, at another time, by another umask's owner.
export SOURCE_DATE_EPOCH=1700000000
mkdir one two
echo a >one/a; echo b >one/b
echo b >two/b; touch -d 2001-01-01 two/b; echo a >two/a
archive one.tgz one .
archive two.tgz two .
cmp one.tgz two.tgz || fails "archives of the same content differ"
echo changed >two/a
archive two.tgz two .
! cmp -s one.tgz two.tgz || fails "archives of other content are the same"

# A store that knows what is loaded and tagged, and a loader that says how it was started.
mkdir -p mode/{bin,lib,libexec,images} path store
sed 's/@VERSION@/1.2.3/' "$images/local_mode.sh" >mode/bin/bsp-operator
printf '#!/bin/sh\necho "$@"\n' >mode/lib/ld-linux-x86-64.so.2
cat >path/podman <<'PODMAN'
#!/bin/sh
case "$1 $2" in
  "image inspect") cat "store/$(basename "$5")" 2>/dev/null ;;
  "image exists") [ -e "store/$3" ] ;;
  "load -q") echo "load $(basename "$4")" >>log; touch "store/id-of-$(basename "$4" .tar)" ;;
  "tag "*) echo "tag $2 $3" >>log; echo "$2" >"store/$(basename "$3")" ;;
  *) echo "unexpected: $*" >>log; exit 1 ;;
esac
PODMAN
chmod +x mode/bin/bsp-operator mode/lib/ld-linux-x86-64.so.2 path/podman
for name in bsp-runtime bsp-apps; do echo "id-of-$name" >mode/images/$name.id; done
export PATH=$place/path:$PATH
touch log

run() { mode/bin/bsp-operator "$@" 2>/dev/null; }
started=$(run simulate --pools x)
[ "${started#*--argv0 bsp-operator }" = "$place/mode/bin/../libexec/bsp-operator simulate --pools x" ] || fails "started as: $started"
[ ! -s log ] || fails "simulate loads images: $(cat log)"
run local run -f job.yaml >/dev/null
diff - log <<'LOG' || fails "the first run loads other images"
load bsp-runtime.tar
tag id-of-bsp-runtime localhost/bsp-runtime:dev
load bsp-apps.tar
tag id-of-bsp-apps localhost/bsp-apps:dev
LOG
: >log
run local run -f job.yaml >/dev/null
run local get >/dev/null
run check image >/dev/null
[ ! -s log ] || fails "loaded again: $(cat log)"
echo id-of-another-release >store/bsp-runtime:dev
run check image >/dev/null
[ "$(cat log)" = "tag id-of-bsp-runtime localhost/bsp-runtime:dev" ] || fails "another release's runtime: $(cat log)"
