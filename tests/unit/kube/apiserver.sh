#!/bin/bash
# apiserver.sh DIRECTORY COMMAND…: runs COMMAND with an etcd and a kube-apiserver, but no other part of a cluster, and
# with BSP_KUBE_TEST_KUBECONFIG set. Programs come from $BSP_CLUSTER_BIN (build/cluster/bin).
# Everything is in DIRECTORY and on free ports of 127.0.0.1.
set -euo pipefail
directory=$1
shift
bin=${BSP_CLUSTER_BIN:-$(cd "$(dirname "$0")/../../.." && pwd)/build/cluster/bin}
for program in etcd kube-apiserver; do
  [ -x "$bin/$program" ] || { echo "$bin/$program is missing: ./dev cluster up makes it" >&2; exit 77; }
done
mkdir -p "$directory"
cd "$directory"
umask 077
rm -rf etcd  # what the last run has stored

# Below the ports that the kernel gives to those who name none: nobody takes one before its server listens.
read -r client peer port < <(python3 - <<'PYTHON'
import contextlib, random, socket
free = []
for port in random.sample(range(20000, 32768), 1000):
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        free.append(port)
print(*free[:3])
PYTHON
)

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=test-ca \
  -addext keyUsage=critical,keyCertSign 2>/dev/null
openssl ecparam -genkey -name prime256v1 -noout -out sa.key
issue() {  # issue NAME SUBJECT EXTENSION
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -out "$1.crt" -extfile <(echo "$3") 2>/dev/null
}
# Python's strict checks require the key identifiers.
issue server /CN=kube-apiserver "$(printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nauthorityKeyIdentifier=keyid')"
issue admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth

"$bin/etcd" --data-dir="$PWD/etcd" --unsafe-no-fsync --log-level=error --listen-client-urls="http://127.0.0.1:$client" \
  --advertise-client-urls="http://127.0.0.1:$client" --listen-peer-urls="http://127.0.0.1:$peer" \
  --initial-advertise-peer-urls="http://127.0.0.1:$peer" --initial-cluster="default=http://127.0.0.1:$peer" >etcd.log 2>&1 &
etcd=$!
"$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$client" --bind-address=127.0.0.1 --secure-port="$port" \
  --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/24 \
  --tls-cert-file=server.crt --tls-private-key-file=server.key --client-ca-file=ca.crt --authorization-mode=RBAC \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file=sa.key \
  --service-account-signing-key-file=sa.key --allow-privileged --disable-admission-plugins=ServiceAccount --profiling=false >apiserver.log 2>&1 &
apiserver=$!
# Both at once, because an API server may wait forever for an etcd that has exited.
stop() { kill -KILL $apiserver $etcd 2>/dev/null || true; wait $apiserver $etcd 2>/dev/null || true; }
trap stop EXIT

cat >kubeconfig <<YAML
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: admin}}]
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$port", certificate-authority: ca.crt}}]
users: [{name: admin, user: {client-certificate: admin.crt, client-key: admin.key}}]
YAML
python3 - "https://127.0.0.1:$port/readyz" $apiserver <<'PYTHON' || { tail -5 apiserver.log etcd.log >&2; exit 1; }
import os, ssl, sys, time, urllib.request
context = ssl.create_default_context(cafile="ca.crt")
context.load_cert_chain("admin.crt", "admin.key")
for _ in range(600):
    os.kill(int(sys.argv[2]), 0)  # it ended: no use to wait
    try:
        if urllib.request.urlopen(sys.argv[1], context=context, timeout=5).read() == b"ok":
            sys.exit(0)
    except OSError:
        pass
    time.sleep(0.2)
sys.exit("the API server did not get ready")
PYTHON
BSP_KUBE_TEST_KUBECONFIG=$PWD/kubeconfig "$@"
