// The API server's address and our credentials, from a kubeconfig or from a pod's service account.
//
// Looks in the same places as kubectl: the given file, otherwise the files in $KUBECONFIG (merged; the first to define
// an entry wins), otherwise ~/.kube/config, otherwise the service account if the environment shows that we are in a
// pod. Inline data wins over a file; relative paths start at the kubeconfig's directory. The error for an unsupported
// feature (exec plugins, auth providers, encrypted keys) names the alternative.
#pragma once

#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::kube {

// Inline text, or a file that may change while we run (tokens and certificates rotate).
struct Material {
  std::string text;
  std::string file;  // reread as it changes; "" if `text` is given
  [[nodiscard]] bool empty() const { return text.empty() && file.empty(); }
};

struct Config {
  std::string server;           // https://host[:port][/prefix]
  std::string tls_server_name;  // the name in the server's certificate; "": the host of `server`
  bool insecure_skip_tls_verify = false;
  Material ca;                  // PEM; empty: the system's CAs
  Material client_certificate;  // PEM; requires client_key
  Material client_key;
  Material token;        // bearer token
  std::string username;  // HTTP basic, for proxies in front of an API server
  std::string password;
  std::string proxy_url;  // http://host:port
  std::string impersonate_user;
  std::vector<std::string> impersonate_groups;
  std::string name_space = "default";
  std::string source;  // for messages: "context kind in /root/.kube/config"
};

struct ConfigOptions {
  std::string kubeconfig = {};  // --kubeconfig
  std::string context = {};     // --context; "": current-context
};

// kInvalid names file, field and remedy; kNotFound if there is no configuration.
Result<Config> load_config(const ConfigOptions& options = {});

// The service account of our pod; the kubelet mounts it at `directory`.
Result<Config> in_cluster_config(const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

// Skips files that don't exist, like kubectl, as long as at least one does.
Result<Config> kubeconfig(const std::vector<std::string>& files, const std::string& context = "");

}  // namespace bsp::kube
