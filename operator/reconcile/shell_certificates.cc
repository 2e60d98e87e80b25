// Who may talk to whom in a job: its CA, the operator's own certificate, and one for each pod.
#include <algorithm>
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
  BSP_TRY(net::PemPair own, net::issue_certificate(*authority_, {.identity = std::string(names::kOperatorIdentity),
                                                                 .dns_names = {},
                                                                 .addresses = {},
                                                                 .not_before = now,
                                                                 .not_after = now + kValidity / 2}));
  auto tls = net::TlsContext::create_late({authority_->certificate, std::move(own.certificate), std::move(own.key)});
  sidecars_ =
      std::make_unique<Sidecars>(sidecar_thread_, Sidecars::Options{.tls = std::move(tls), .changed = changed_});
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
    found = client_.create(make_secret(job, name, {{"cert.pem", ca.certificate}, {"key.pem", ca.key}}));
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

// The keys of a pod that is about to be made, and of those that share their Secret with it.
Result<void> JobShell::create_secret(const crds::BspJob& job, const PodRequest& request) {
  const std::string name = secret_name(job.metadata.name, request);
  std::vector<std::string> pods;
  if (request.target) {
    pods.push_back(pod_name(job.metadata.name, request.rank, request.generation));
  } else {
    const std::size_t first = request.rank - request.rank % kPodsPerSecret;
    const std::size_t end = std::min<std::size_t>(first + kPodsPerSecret, job.status.ranks.size());
    for (std::size_t rank = first; rank < end; ++rank) pods.push_back(job.status.ranks[rank].pod);
  }
  const Time now = SystemClock{}.now();
  std::map<std::string, std::string> files{{"ca.pem", authority_->certificate}};
  for (const std::string& pod : pods) {
    BSP_TRY(net::PemPair pair, net::issue_certificate(*authority_, {.identity = pod,
                                                                    .dns_names = {},
                                                                    .addresses = {},
                                                                    .not_before = now - 1min,
                                                                    .not_after = now + kValidity / 2}));
    files[certificate_file(pod)] = std::move(pair.certificate);
    files[key_file(pod)] = std::move(pair.key);
  }
  auto secret = client_.create(make_secret(job, name, files));
  if (secret) return {};
  if (secret.error().code != ErrorCode::kConflict) return std::unexpected(secret.error());
  // Made before an operator died: good, if it is this job's.
  BSP_TRY(const kube::Object have, client_.get(own(kSecret, name)));
  if (is_ours(have)) return {};
  return fail(ErrorCode::kUnavailable, std::format("Secret {} is in the way; delete it", name), true);
}

}  // namespace bsp::reconcile
