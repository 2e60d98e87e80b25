#!/bin/bash
# pki.sh DIRECTORY API_SERVER CONTROL_IP API_SERVICE_IP HOST_PORT NODE…: writes the cluster's CA, a certificate for every
# client of the API server, and their kubeconfigs into DIRECTORY. Runs in the node image, which has openssl.
set -euo pipefail
cd "$1"
server=$2 control_ip=$3 api_service_ip=$4 host_port=$5
shift 5

key() { openssl ecparam -genkey -name prime256v1 -noout -out "$1.key"; }

# issue NAME SUBJECT EXTENSIONS
issue() {
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -set_serial "0x$(openssl rand -hex 8)" -days 365 -out "$1.crt" \
    -extfile <(printf 'authorityKeyIdentifier=keyid\n%b\n' "$3") 2>/dev/null
  rm "$1.csr"
}

# kubeconfig FILE CERTIFICATE SERVER
kubeconfig() {
  cat >"$1" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: bsp-cluster
  cluster: {server: "$3", certificate-authority-data: $(base64 -w0 ca.crt)}
users:
- name: $2
  user: {client-certificate-data: $(base64 -w0 "$2.crt"), client-key-data: $(base64 -w0 "$2.key")}
contexts:
- name: bsp-cluster
  context: {cluster: bsp-cluster, user: $2}
current-context: bsp-cluster
YAML
}

umask 077
key ca   # OpenSSL 3 in strict mode (Python 3.13) rejects a CA without keyUsage
openssl req -x509 -new -key ca.key -days 365 -subj /CN=bsp-cluster -out ca.crt -addext keyUsage=critical,keyCertSign,cRLSign
key sa   # signs the service accounts' tokens
openssl ec -in sa.key -pubout -out sa.pub 2>/dev/null

client=extendedKeyUsage=clientAuth
names=DNS:localhost
for name in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do names+=,DNS:$name; done
issue apiserver /CN=kube-apiserver "extendedKeyUsage=serverAuth\nsubjectAltName=$names,IP:127.0.0.1,IP:$control_ip,IP:$api_service_ip"
issue apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client $client
issue admin /O=system:masters/CN=admin $client
kubeconfig admin.kubeconfig admin "$server"
kubeconfig host.kubeconfig admin "https://127.0.0.1:$host_port"
issue controller-manager /CN=system:kube-controller-manager $client
issue scheduler /CN=system:kube-scheduler $client
issue proxy /CN=system:kube-proxy $client
issue dns /CN=dns $client
issue policies /CN=policies $client
for part in controller-manager scheduler proxy dns policies; do kubeconfig $part.kubeconfig $part "$server"; done
for node; do
  issue "$node" "/O=system:nodes/CN=system:node:$node" $client
  kubeconfig "$node.kubeconfig" "$node" "$server"
done
