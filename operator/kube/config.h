// Where the API server is and who we are to it: from a pod's service account or from a kubeconfig.
//
// Read as kubectl reads it: the file given, else each file of $KUBECONFIG (merged, the first to name a thing
// wins), else ~/.kube/config, else the service account when the environment says that we are in a pod. Inline
// data wins over the file named beside it; relative paths start at the kubeconfig's own directory. What this
// client can't do (exec plugins, auth providers, encrypted keys) is refused with what to do instead.
#pragma once

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::kube {

// A text that is given inline, or lies in a file that may change while we run (tokens and certificates rotate).
struct Material {
  std::string text;
  std::string file;  // read again and again; "" if `text` is all
  [[nodiscard]] bool empty() const { return text.empty() && file.empty(); }
};

struct Config {
  std::string server;           // https://host[:port][/prefix]
  std::string tls_server_name;  // the name in the server's certificate; "": the server's host
  bool insecure_skip_tls_verify = false;
  Material ca;                  // PEM; empty: what the system trusts
  Material client_certificate;  // PEM; with client_key or not at all
  Material client_key;
  Material token;        // bearer token
  std::string username;  // HTTP basic, for proxies in front of an API server
  std::string password;
  std::string proxy_url;  // http://host:port
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::string name_space = "default";
  std::string source;  // for messages: "context kind of /root/.kube/config"
};

struct ConfigOptions {
  std::string kubeconfig = {};  // --kubeconfig
  std::string context = {};     // --context; "": current-context
};

// kInvalid names file, field and remedy; kNotFound if there is no configuration at all.
Result<Config> load_config(const ConfigOptions& options = {});

// The service account of the pod we run in; `directory` is where the kubelet mounts it.
Result<Config> in_cluster_config(const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

// Files that do not exist are passed over, as kubectl does, as long as one is there.
Result<Config> kubeconfig(const std::vector<std::string>& files, const std::string& context = "");

}  // namespace bsp::kube
