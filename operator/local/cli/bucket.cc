#include "operator/local/cli/bucket.h"

#include <cstdlib>
#include <filesystem>
#include <format>
#include <vector>

#include "base/core/read_file.h"
#include "crds/names.h"
#include "operator/local/files.h"
#include "operator/local/podman.h"

namespace bsp::local {
namespace {

constexpr std::string_view kScheme = "s3://";

std::string variable_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return "";
}

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value ? value : "";
  ::unsetenv(name);
  return text;
}

}  // namespace

Result<OneJob::Secrets> secrets_of(const crds::S3Source& s3) {
  OneJob::Secrets secrets;
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}) {
    const std::string value = take_variable(name);
    if (!value.empty())
      secrets[s3.credentials_secret][name] = value;
    else if (std::string_view(name) != "AWS_SESSION_TOKEN")
      return fail(
          ErrorCode::kInvalid,
          std::format("spec.checkpoint.storage.s3.credentialsSecret: set {} in the environment: local mode takes "
                      "the bucket's keys from there",
                      name));
  }
  if (s3.ca_secret.empty()) return secrets;
  const std::string bundle = take_variable("AWS_CA_BUNDLE");
  if (bundle.empty())
    return fail(
        ErrorCode::kInvalid,
        "spec.checkpoint.storage.s3.caSecret: set AWS_CA_BUNDLE in the environment to the file of its certificate");
  auto certificates = read_file(bundle);
  if (!certificates) return std::unexpected(certificates.error().in("AWS_CA_BUNDLE"));
  secrets[s3.ca_secret][std::string(names::kStorageCaKey)] = std::move(*certificates);
  return secrets;
}

Result<bool> names_bucket(const std::string& place) {
  if (place.starts_with(kScheme)) return true;
  if (place.contains("://"))
    return fail(ErrorCode::kInvalid, std::format("\"{}\": must be a directory or s3://BUCKET[/PREFIX]", place));
  return false;
}

Result<crds::S3Source> bucket_of(const std::string& place) {
  crds::S3Source s3;
  const std::string path = place.substr(kScheme.size());
  const std::size_t slash = std::min(path.find('/'), path.size());
  s3.bucket = path.substr(0, slash);
  s3.prefix = path.substr(std::min(slash + 1, path.size()));
  while (s3.prefix.ends_with('/')) s3.prefix.pop_back();
  s3.endpoint = variable_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  while (s3.endpoint.ends_with('/')) s3.endpoint.pop_back();
  if (s3.endpoint.empty())
    return fail(ErrorCode::kInvalid,
                std::format("{}: set AWS_ENDPOINT_URL in the environment to the server's address, such "
                            "as https://minio.example:9000",
                            place));
  if (const auto parts = crds::endpoint_parts(s3.endpoint); !parts)
    return fail(parts.error().code, "AWS_ENDPOINT_URL: " + parts.error().message);
  if (const std::string region = variable_of({"AWS_REGION", "AWS_DEFAULT_REGION"}); !region.empty()) s3.region = region;
  s3.credentials_secret = "checkpoint-bucket";
  if (!variable_of({"AWS_CA_BUNDLE"}).empty()) s3.ca_secret = "checkpoint-bucket-ca";
  return s3;
}

Result<std::string> own_directory_of(const std::string& place) {
  std::string state = variable_of({"XDG_STATE_HOME"});
  if (!state.starts_with('/')) {
    state = variable_of({"HOME"});
    if (!state.starts_with('/'))
      return fail(ErrorCode::kInvalid,
                  std::format("{}: set HOME or XDG_STATE_HOME in the environment: the seed of the sets' keys is kept "
                              "there, and not in the bucket",
                              place));
    state += "/.local/state";
  }
  std::string path = place.substr(kScheme.size());
  while (path.ends_with('/')) path.pop_back();
  if (path.empty() || path.starts_with('.') || path.contains("/.") || path.contains("//"))
    return fail(ErrorCode::kInvalid, std::format("\"{}\": must be s3://BUCKET[/PREFIX]", place));
  return std::format("{}/bsp-operator/s3/{}", state, path);
}

Result<void> remove_from_bucket(const crds::S3Source& s3, const OneJob::Secrets& secrets,
                                const std::set<std::string>& uids) {
  char name[] = "/tmp/bsp-bucket-XXXXXX";  // of mode 0700
  if (!::mkdtemp(name)) return fail_errno("making a directory for the bucket's keys");
  const std::string directory = name;
  const auto removed = [&]() -> Result<void> {
    std::vector<std::string> args{"run", "--rm", "--pull", "never", "--network", "host", "--user", "0:0"};
    podman::add_limits(args);
    const auto mount = [&](const std::string& secret, std::string_view target) -> Result<void> {
      const std::string from = directory + "/" + secret;
      BSP_CHECK_OK(make_directories(from));
      for (const auto& [key, value] : secrets.at(secret)) {
        const std::string file = from + "/" + key;
        BSP_CHECK_OK(replace_file(file, file + ".new", value));
      }
      args.insert(args.end(), {"-v", std::format("{}:{}:ro", from, target)});
      return {};
    };
    const auto env = [&](std::string_view variable, const std::string& value) {
      args.insert(args.end(), {"-e", std::format("{}={}", variable, value)});
    };
    BSP_CHECK_OK(mount(s3.credentials_secret, names::kStorageCredentials));
    env(names::kEnvStorage, std::format("s3://{}{}{}", s3.bucket, s3.prefix.empty() ? "" : "/", s3.prefix));
    env(names::kEnvStorageEndpoint, s3.endpoint);
    env(names::kEnvStorageRegion, s3.region);
    if (!s3.ca_secret.empty()) {
      BSP_CHECK_OK(mount(s3.ca_secret, names::kStorageCaDir));
      env(names::kEnvStorageCa, std::format("{}/{}", names::kStorageCaDir, names::kStorageCaKey));
    }
    for (const std::string& uid : uids) {
      std::vector<std::string> words = args;
      words.insert(words.end(), {"-e", std::format("{}={}", names::kEnvJobUid, uid), "--entrypoint",
                                 R"(["/bsp/bsp-sidecar"])", std::string(names::kRuntimeImage), "--remove-sets"});
      BSP_CHECK_OK(podman::call(words).transform([](const auto&) {}));
    }
    return {};
  }();
  const auto cleaned = remove_tree(directory);
  return removed ? cleaned : removed;
}

}  // namespace bsp::local
