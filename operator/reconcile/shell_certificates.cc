// Who may talk to whom in a job: its CA, the operator's own certificate, and one for each pod.
#include <format>

#include "base/core/base64.h"
#include "operator/reconcile/shell_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {
constexpr auto kValidity = std::chrono::days(365);
}  // namespace

// The operator's own certificate, and with it the links to the sidecars.
Result<void> JobShell::connect(const crds::BspJob& job) {
  const Time now = SystemClock{}.now();
  if (auto loaded = load_authority(job); !loaded) {
    if (job.metadata.deletion_timestamp == Time{}) return loaded;
    // It must be able to go all the same: where its namespace goes too, no Secret can be made. Nothing is asked of its
    // sidecars any more, so any CA will do.
    BSP_TRY(authority_, net::create_ca("bspjob-that-goes", now - 5min, now + kValidity));
  }
  BSP_TRY(const net::PemPair own,
          net::issue_certificate(*authority_, {.identity = std::string(names::kOperatorIdentity),
                                               .dns_names = {},
                                               .addresses = {},
                                               .not_before = now,
                                               .not_after = now + kValidity / 2}));
  BSP_TRY(auto tls, net::TlsContext::create({authority_->certificate, own.certificate, own.key}));
  sidecars_ = std::make_unique<Sidecars>(loop_, Sidecars::Options{.tls = std::move(tls), .changed = changed_});
  return {};
}

// The job's CA lives in a Secret, so that the certificates of running pods stay good for a fresh operator.
Result<void> JobShell::load_authority(const crds::BspJob& job) {
  const std::string name = job.metadata.name + "-ca";
  auto found = client_.get(own(kSecret, name));
  if (!found && found.error().code == ErrorCode::kNotFound) {
    const Time now = SystemClock{}.now();
    BSP_TRY(const net::PemPair ca,
            net::create_ca(std::format("bspjob-{}", job.metadata.uid), now - 5min, now + kValidity));
    found = client_.create(make_secret(job, name, ca.certificate, ca.certificate, ca.key));
    if (!found && found.error().code == ErrorCode::kConflict) found = client_.get(own(kSecret, name));
  }
  if (!found) return std::unexpected(found.error());
  if (!is_ours(*found))
    return fail(ErrorCode::kUnavailable,
                std::format("Secret {} belongs to something else, or to a former job of this name that is still being "
                            "removed; delete it, or give the job another name",
                            name),
                true);
  net::PemPair pair;
  for (const auto& [part, text] : {std::pair{"cert.pem", &pair.certificate}, {"key.pem", &pair.key}}) {
    auto decoded = base64_decode(found->value("data", json::object()).value(part, ""));
    if (!decoded) return std::unexpected(decoded.error().in(std::format("Secret {}: data.{}", name, part)));
    *text = std::move(*decoded);
  }
  authority_ = std::move(pair);
  return {};
}

Result<void> JobShell::create_secret(const crds::BspJob& job, const std::string& pod) {
  const Time now = SystemClock{}.now();
  BSP_TRY(const net::PemPair pair, net::issue_certificate(*authority_, {.identity = pod,
                                                                        .dns_names = {},
                                                                        .addresses = {},
                                                                        .not_before = now - 1min,
                                                                        .not_after = now + kValidity / 2}));
  const std::string name = secret_name(pod);
  auto secret = client_.create(make_secret(job, name, authority_->certificate, pair.certificate, pair.key));
  if (secret) return {};
  if (secret.error().code != ErrorCode::kConflict) return std::unexpected(secret.error());
  // Made before an operator died: good, if it is this job's.
  BSP_TRY(const kube::Object have, client_.get(own(kSecret, name)));
  if (is_ours(have)) return {};
  return fail(ErrorCode::kUnavailable, std::format("Secret {} is in the way; delete it", name), true);
}

}  // namespace bsp::reconcile
