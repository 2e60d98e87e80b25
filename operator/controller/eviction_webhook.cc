#include "operator/controller/eviction_webhook.h"

#include <format>

#include "base/core/base64.h"
#include "base/core/log.h"
#include "base/net/pki.h"
#include "base/net/sha256.h"
#include "crds/names.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/shell/authority.h"
#include "operator/reconcile/shell/credentials.h"
#include "operator/reconcile/shell/eviction.h"

namespace bsp::controller {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// The API server waits no longer than the configuration's timeoutSeconds.
constexpr kube::ApiOptions kAnswerCalls{.call = 2s, .attempt = 2s};
constexpr kube::ApiOptions kKeeperCalls{.call = 10s, .attempt = 5s};
constexpr const char* kCaName = "evictions";  // no job's uid is like that

// True if it changes the configuration's webhooks: each is to be called at `path`, where one shows a certificate of `ca`.
bool register_in(kube::Object& configuration, const std::string& path, const std::string& ca,
                 const std::string& certificate, Time now) {
  const auto entries = configuration.find("webhooks");
  if (entries == configuration.end() || !entries->is_array()) return false;
  bool changed = false;
  for (json& entry : *entries) {
    if (!part_at(part_at(entry, "clientConfig"), "service").is_object()) continue;
    json& config = entry["clientConfig"];
    // Another replica's certificate of the same CA will do, since the key is the same.
    const auto bundle = base64_decode(text_at(config, "caBundle"));
    const auto end = bundle ? net::not_after(*bundle) : fail(ErrorCode::kInvalid, "");
    const bool trusts = end && *end > now + reconcile::kValidity / 2 && net::is_signed_by(certificate, *bundle);
    if (trusts && text_at(config["service"], "path") == path) continue;
    if (!trusts) config["caBundle"] = base64_encode(ca);
    config["service"]["path"] = path;
    changed = true;
  }
  return changed;
}

}  // namespace

Result<std::unique_ptr<EvictionWebhook>> EvictionWebhook::open(const kube::Config& config, WebhookOptions options) {
  BSP_TRY(auto client, kube::ApiClient::create(config, {.api = kAnswerCalls}));
  BSP_TRY(auto keeper, kube::ApiClient::create(config, {.api = kKeeperCalls}));
  std::unique_ptr<EvictionWebhook> webhook(
      new EvictionWebhook(std::move(options), std::move(client), std::move(keeper)));
  BSP_CHECK_OK(webhook->start());
  return webhook;
}

Result<void> EvictionWebhook::start() {
  // Nobody trusts or knows this one; the port is there, and an address in use is an error now.
  BSP_TRY(const std::string nobodys, net::new_seed());
  BSP_CHECK_OK(become(nobodys));
  BSP_TRY(port_, Endpoints::open(
                     options_.address,
                     {.post = [this](const std::string& path, const std::string& body) { return answer(path, body); },
                      .tls = tls_},
                     {.body = reconcile::kReviewBytes}));
  keeping_.emplace([this] { return keep(); }, options_.try_again,
                   "evictions of ranks' pods are not answered by migrations");
  return {};
}

EvictionWebhook::~EvictionWebhook() {
  if (keeping_) keeping_->stop();
  client_->close();
  keeper_->close();
  keeping_.reset();
  port_.reset();
}

// The Secret is read again each time, since another leader may have made another one. Without it nothing changes: the
// leader makes it before there is a rank, and puts it back if it was lost.
Rounds::Next EvictionWebhook::keep() {
  BSP_TRY(const auto stored, reconcile::Authority(*keeper_, options_.own_name_space, options_.seed_name).stored());
  if (!stored && !knows_seed_) return options_.try_again;
  const std::string seed = stored ? *stored : identity_.seed;
  if (seed != identity_.seed || reconcile::must_renew(identity_.made, SystemClock::now())) BSP_CHECK_OK(become(seed));
  knows_seed_ = true;
  BSP_TRY(const bool changed, register_here());
  if (changed) log_info("evictions of ranks' pods are answered by migrations", {{"configuration", options_.name}});
  return options_.keep_every;
}

Result<void> EvictionWebhook::become(const std::string& seed) {
  const Time now = SystemClock::now();
  const reconcile::Validity valid = reconcile::validity_from(now);
  BSP_TRY(const net::PemPair ca, net::derive_ca(seed, kCaName, valid.from, valid.to));
  BSP_TRY(net::PemPair own,
          net::issue_certificate(ca, {.identity = std::string(names::kOperatorIdentity),
                                      .dns_names = {std::format("{}.{}.svc", options_.name, options_.own_name_space)},
                                      .addresses = {},
                                      .not_before = valid.from,
                                      .not_after = valid.to}));
  const net::Credentials credentials{ca.certificate, own.certificate, own.key};
  if (tls_) {
    BSP_CHECK_OK(tls_->renew(credentials));
  } else {
    BSP_TRY(tls_, net::TlsContext::create(credentials));
  }
  identity_ = {.seed = seed,
               .path = "/" + net::sha256("path of the webhook on evictions\n" + seed).substr(0, 32),
               .ca = ca.certificate,
               .certificate = own.certificate,
               .made = now};
  const std::lock_guard lock(mutex_);
  path_ = identity_.path;
  return {};
}

// True if it had to be written.
Result<bool> EvictionWebhook::register_here() {
  bool changed = false;
  BSP_TRY(const auto written, kube::modify(*keeper_, {kValidatingWebhookConfiguration, "", options_.name},
                                           [&](kube::Object& configuration) {
                                             return changed = register_in(configuration, identity_.path, identity_.ca,
                                                                          identity_.certificate, SystemClock::now());
                                           }));
  return changed;
}

Page EvictionWebhook::answer(const std::string& path, const std::string& body) {
  {
    const std::lock_guard lock(mutex_);
    // Compared as digests, so that the time it takes tells nothing of the path.
    if (net::sha256(path) != net::sha256(path_)) return {404, "no such page\n"};
  }
  const auto review = reconcile::eviction_review_from(body);
  if (!review) return {400, review.error().message + "\n"};
  reconcile::EvictionAnswer answer{.allowed = true, .message = "its namespace is not this operator's", .ask = {}};
  if (options_.name_space.empty() || options_.name_space == review->name_space) {
    auto answered = reconcile::evict(*client_, *review);
    if (!answered) return {503, answered.error().message + "\n"};
    answer = std::move(*answered);
  }
  log_debug("an eviction is answered",
            {{"pod", review->name_space + "/" + review->pod}, {"allowed", answer.allowed}, {"why", answer.message}});
  return {200, reconcile::to_review(*review, answer).dump(), "application/json"};
}

}  // namespace bsp::controller
