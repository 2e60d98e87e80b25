#include "operator/local/cli/bucket.h"

#include <cstdlib>
#include <format>

#include "base/core/read_file.h"
#include "crds/names.h"

namespace bsp::local {
namespace {

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

}  // namespace bsp::local
