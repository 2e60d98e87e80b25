#include "operator/kube/credentials.h"

#include <format>

#include "base/core/base64.h"
#include "base/core/log.h"
#include "base/core/read_file.h"
#include "operator/kube/text.h"

namespace bsp::kube {
namespace {

constexpr auto kRereadAfter = std::chrono::seconds(10);

}  // namespace

std::string trim(const std::string& text) {
  const auto from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

Credentials::Credentials(const Config& config)
    : token_{config.token, "", {}},
      ca_{config.ca, "", {}},
      certificate_{config.client_certificate, "", {}},
      key_{config.client_key, "", {}} {
  if (!config.username.empty()) basic_ = "Basic " + base64_encode(config.username + ":" + config.password);
}

const std::string& Credentials::current(Held& held) {
  if (held.given.file.empty()) return held.given.text;
  const auto now = std::chrono::steady_clock::now();
  if (held.read == std::chrono::steady_clock::time_point{} || now - held.read > kRereadAfter) {
    if (auto content = read_file(held.given.file); content && !trim(*content).empty()) {
      held.value = std::move(*content);
    } else {
      log_warning("failed to read credentials, the previous ones stay in use",
                  {{"file", held.given.file}, {"error", content ? "empty file" : content.error().message}});
    }
    held.read = now;
  }
  return held.value;
}

std::string Credentials::authorization() {
  const std::lock_guard lock(mutex_);
  const std::string token = trim(current(token_));
  return token.empty() ? basic_ : "Bearer " + token;
}

TlsMaterial Credentials::tls() {
  const std::lock_guard lock(mutex_);
  return {current(ca_), current(certificate_), current(key_)};
}

void Credentials::invalidate_token() {
  const std::lock_guard lock(mutex_);
  token_.read = {};
}

}  // namespace bsp::kube
