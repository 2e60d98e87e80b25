#include "operator/reconcile/shell/authority.h"

#include <format>
#include <optional>
#include <utility>

#include "base/core/base64.h"
#include "base/core/log.h"
#include "base/net/pki.h"
#include "operator/kube/fields.h"

namespace bsp::reconcile {
namespace {

constexpr const char* kSeed = "seed";

// nullopt: there is none in it.
std::optional<std::string> seed_in(const kube::Object& secret) {
  auto decoded = base64_decode(text_at(part_at(secret, "data"), kSeed));
  if (!decoded || decoded->size() != net::kSeedBytes) return std::nullopt;
  return std::move(*decoded);
}

}  // namespace

Authority::Authority(kube::Client& client, std::string name_space, std::string name, std::chrono::milliseconds interval)
    : client_(client), at_{kSecret, std::move(name_space), std::move(name)}, interval_(interval) {}

Result<std::string> Authority::seed() {
  const std::lock_guard lock(mutex_);
  if (!seed_.empty()) return seed_;
  BSP_TRY(const std::string fresh, net::new_seed());
  auto stored = store(fresh, false);
  if (!stored) return std::unexpected(stored.error().in(std::format("Secret {}/{}", at_.name_space, at_.name)));
  seed_ = std::move(*stored);
  next_ = std::chrono::steady_clock::now() + interval_;
  return seed_;
}

Result<std::string> Authority::cluster() {
  const std::lock_guard lock(mutex_);
  if (!cluster_.empty()) return cluster_;
  const auto system = client_.get({kNamespace, "", "kube-system"});
  if (!system) return std::unexpected(system.error().in("namespace kube-system"));
  cluster_ = kube::metadata_text(*system, "uid");
  return cluster_;
}

Result<std::optional<std::string>> Authority::stored() {
  const auto secret = client_.get(at_);
  if (secret) return seed_in(*secret);
  if (secret.error().code == ErrorCode::kNotFound) return std::nullopt;
  return std::unexpected(secret.error());
}

void Authority::keep() {
  std::string seed;
  {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (seed_.empty() || now < next_) return;
    next_ = now + interval_;
    seed = seed_;
  }
  if (const auto kept = store(seed, true); !kept)
    log_warning("the seed of the jobs' certificates can't be kept", {{"error", kept.error().message}});
}

Result<std::string> Authority::store(const std::string& seed, bool in_use) {
  auto secret = client_.get(at_);
  if (!secret && secret.error().code != ErrorCode::kNotFound) return std::unexpected(secret.error());
  const bool there = secret.has_value();
  if (there) {
    auto stored = seed_in(*secret);
    if (stored && (!in_use || *stored == seed)) return std::move(*stored);
  } else {
    secret = kube::Object{{"apiVersion", "v1"},
                          {"kind", "Secret"},
                          {"metadata", {{"name", at_.name}, {"namespace", at_.name_space}}},
                          {"type", "Opaque"}};
  }
  const bool replaces = !part_at(*secret, "data").empty();
  (*secret)["data"] = {{kSeed, base64_encode(seed)}};
  if (auto written = there ? client_.update(*secret) : client_.create(*secret); !written)
    return std::unexpected(written.error());
  log(in_use || replaces ? LogLevel::kWarning : LogLevel::kInfo,
      in_use     ? "the seed of the jobs' certificates was deleted or changed, and is put back"
      : replaces ? "the seed of the jobs' certificates can't be read, and is replaced"
                 : "the seed of the jobs' certificates is made",
      {{"secret", at_.name_space + "/" + at_.name}});
  return seed;
}

}  // namespace bsp::reconcile
