#include "operator/kube/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <nlohmann/json.hpp>

#include "base/core/base64.h"
#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "operator/kube/text.h"

namespace bsp::kube {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A section of a kubeconfig, with its file for messages and relative paths.
struct Section {
  json value = json::object();
  std::string file;
  std::string where;  // clusters["kind"].cluster
};

std::unexpected<Error> bad(const Section& section, const std::string& field, const std::string& what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}.{}: {}", section.file, section.where, field, what));
}

Result<std::string> text_of(const Section& section, const std::string& field) {
  const auto it = section.value.find(field);
  if (it == section.value.end() || it->is_null()) return std::string();
  if (!it->is_string()) return bad(section, field, "must be a string");
  return it->get<std::string>();
}

Result<bool> flag_of(const Section& section, const std::string& field) {
  const auto it = section.value.find(field);
  if (it == section.value.end() || it->is_null()) return false;
  if (!it->is_boolean()) return bad(section, field, "must be true or false");
  return it->get<bool>();
}

std::string resolve(const Section& section, const std::string& path) {
  return path.empty() || fs::path(path).is_absolute() ? path : (fs::path(section.file).parent_path() / path).string();
}

// certificate-authority[-data], client-certificate[-data], client-key[-data]: PEM.
Result<Material> pem_of(const Section& section, const std::string& field) {
  BSP_TRY(const std::string data, text_of(section, field + "-data"));
  BSP_TRY(const std::string path, text_of(section, field));
  Material material;
  if (!data.empty()) {
    auto decoded = base64_decode(data);
    if (!decoded) return bad(section, field + "-data", decoded.error().message);
    if (decoded->find("-----BEGIN") == std::string::npos)
      return bad(section, field + "-data", "is not PEM (-----BEGIN …)");
    material.text = std::move(*decoded);
  } else if (!path.empty()) {
    material.file = resolve(section, path);
    if (auto content = read_file(material.file); !content) return bad(section, field, content.error().message);
  }
  return material;
}

// The first entry named `name` in the list `list` of any of the files.
Result<Section> entry(const std::vector<Section>& files, const std::string& list, const std::string& name,
                      const std::string& member) {
  for (const Section& file : files) {
    const auto items = file.value.find(list);
    if (items == file.value.end() || items->is_null()) continue;
    if (!items->is_array()) return fail(ErrorCode::kInvalid, std::format("{}: {}: must be a list", file.file, list));
    for (const json& item : *items) {
      if (part_at(item, "name") != name) continue;
      Section found{part_at(item, member), file.file, std::format("{}[\"{}\"].{}", list, name, member)};
      if (found.value.is_null()) found.value = json::object();
      if (!found.value.is_object())
        return fail(ErrorCode::kInvalid, found.file + ": " + found.where + ": must be a map");
      return found;
    }
  }
  return fail(ErrorCode::kInvalid, std::format("{}: \"{}\" not found in {}", files.front().file, name, list));
}

Result<void> read_user(const Section& user, Config& config) {
  if (user.value.contains("exec"))
    return bad(user, "exec",
               "credential plugins are not supported; use a service account's token (kubectl create token) as "
               "\"token\", or a client certificate");
  if (user.value.contains("auth-provider"))
    return bad(user, "auth-provider", "auth providers are not supported; use a \"token\" or a client certificate");
  BSP_TRY(config.client_certificate, pem_of(user, "client-certificate"));
  BSP_TRY(config.client_key, pem_of(user, "client-key"));
  if (config.client_certificate.empty() != config.client_key.empty())
    return bad(user, config.client_key.empty() ? "client-key" : "client-certificate",
               "required: certificate and key belong together");
  if (config.client_key.text.find("ENCRYPTED") != std::string::npos)
    return bad(user, "client-key-data", "is encrypted; decrypt it with openssl pkey");
  BSP_TRY(config.token.text, text_of(user, "token"));
  BSP_TRY(const std::string token_file, text_of(user, "tokenFile"));
  if (!token_file.empty()) {  // as in kubectl, the file wins
    config.token = {"", resolve(user, token_file)};
    if (auto content = read_file(config.token.file); !content) return bad(user, "tokenFile", content.error().message);
  }
  BSP_TRY(config.username, text_of(user, "username"));
  BSP_TRY(config.password, text_of(user, "password"));
  if (!config.username.empty() && !config.token.empty())
    return bad(user, "username", "can't be combined with a token; remove one of them");
  BSP_TRY(config.impersonate_user, text_of(user, "as"));
  if (const auto groups = user.value.find("as-groups"); groups != user.value.end() && !groups->is_null()) {
    if (!groups->is_array()) return bad(user, "as-groups", "must be a list");
    for (const json& group : *groups) {
      if (!group.is_string()) return bad(user, "as-groups", "must be a list of strings");
      config.impersonate_groups.push_back(group.get<std::string>());
    }
  }
  return {};
}

Result<void> read_cluster(const Section& cluster, Config& config) {
  BSP_TRY(config.server, text_of(cluster, "server"));
  if (config.server.empty()) return bad(cluster, "server", "is required");
  if (!config.server.starts_with("https://") && !config.server.starts_with("http://"))
    config.server = "https://" + config.server;
  if (config.server.find("://[") != std::string::npos)
    return bad(cluster, "server",
               "IPv6 addresses are not supported; use a host name that resolves to it and is in the certificate");
  while (config.server.ends_with('/')) config.server.pop_back();
  BSP_TRY(config.insecure_skip_tls_verify, flag_of(cluster, "insecure-skip-tls-verify"));
  BSP_TRY(config.ca, pem_of(cluster, "certificate-authority"));
  if (config.insecure_skip_tls_verify && !config.ca.empty())
    return bad(cluster, "insecure-skip-tls-verify", "can't be combined with certificate-authority; remove one of them");
  BSP_TRY(config.tls_server_name, text_of(cluster, "tls-server-name"));
  BSP_TRY(config.proxy_url, text_of(cluster, "proxy-url"));
  if (!config.proxy_url.empty() && !config.proxy_url.starts_with("http://"))
    return bad(cluster, "proxy-url", "only http:// proxies are supported");
  return {};
}

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> files;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(':', from), text.size());
    if (to > from) files.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return files;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Result<Config> kubeconfig(const std::vector<std::string>& files, const std::string& wanted) {
  std::vector<Section> read;
  for (const std::string& file : files) {
    auto content = read_file(file);
    if (!content && content.error().code == ErrorCode::kNotFound) continue;
    if (!content) return std::unexpected(content.error());
    auto documents = read_yaml(*content);
    if (!documents)
      return fail(ErrorCode::kInvalid,
                  std::format("{}:{}: {}", file, documents.error().line, documents.error().message));
    if (documents->empty()) continue;
    if (!documents->front().is_object()) return fail(ErrorCode::kInvalid, file + ": is not a kubeconfig (not a map)");
    read.push_back({std::move(documents->front()), file, ""});
  }
  if (read.empty())
    return fail(ErrorCode::kNotFound,
                std::format("no kubeconfig: {} doesn't exist or is empty", files.empty() ? "it" : files.front()));
  std::string context = wanted;
  for (const Section& file : read)
    if (context.empty())
      if (const auto it = file.value.find("current-context"); it != file.value.end() && it->is_string())
        context = it->get<std::string>();
  if (context.empty())
    return fail(ErrorCode::kInvalid,
                read.front().file + ": current-context is not set; select a context with --context");

  BSP_TRY(const Section chosen, entry(read, "contexts", context, "context"));
  BSP_TRY(const std::string cluster_name, text_of(chosen, "cluster"));
  if (cluster_name.empty()) return bad(chosen, "cluster", "is required");
  Config config;
  config.source = std::format("context {} in {}", context, chosen.file);
  BSP_TRY(const Section cluster, entry(read, "clusters", cluster_name, "cluster"));
  BSP_CHECK_OK(read_cluster(cluster, config));
  BSP_TRY(const std::string user_name, text_of(chosen, "user"));
  if (!user_name.empty()) {
    BSP_TRY(const Section user, entry(read, "users", user_name, "user"));
    BSP_CHECK_OK(read_user(user, config));
  }
  BSP_TRY(const std::string name_space, text_of(chosen, "namespace"));
  if (!name_space.empty()) config.name_space = name_space;
  return config;
}

Result<Config> in_cluster_config(const std::string& directory) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST");
  const std::string port = environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return fail(ErrorCode::kNotFound, "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  Config config;
  // Our HTTP library doesn't support IPv6 addresses in URLs; every API server's certificate has this name.
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server = std::format("https://{}:{}", ipv6 ? "kubernetes.default.svc" : host, port);
  config.ca.file = directory + "/ca.crt";
  config.token.file = directory + "/token";
  for (const std::string& file : {config.ca.file, config.token.file})
    if (auto content = read_file(file); !content)
      return std::unexpected(content.error().in("the pod's service account (automountServiceAccountToken?)"));
  if (auto name_space = read_file(directory + "/namespace"))
    if (const std::string name = trim(*name_space); !name.empty()) config.name_space = name;
  config.source = "the pod's service account";
  return config;
}

Result<Config> load_config(const ConfigOptions& options) {
  if (!options.kubeconfig.empty()) return kubeconfig({options.kubeconfig}, options.context);
  if (const auto files = split_path(environment("KUBECONFIG")); !files.empty())
    return kubeconfig(files, options.context);
  const std::string home = environment("HOME") + "/.kube/config";
  std::error_code error;
  if (fs::exists(home, error)) return kubeconfig({home}, options.context);
  if (options.context.empty() && !environment("KUBERNETES_SERVICE_HOST").empty()) return in_cluster_config();
  return fail(ErrorCode::kNotFound,
              std::format("no cluster is configured: not in a pod, $KUBECONFIG is not set, {} doesn't exist", home));
}

}  // namespace bsp::kube
