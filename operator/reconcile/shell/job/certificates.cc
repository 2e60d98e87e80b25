#include "operator/reconcile/shell/job/certificates.h"

#include <format>
#include <set>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/shell/job/source_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

namespace {

constexpr auto kTryAgain = 1min;
// A kubelet shows a pod its changed Secret within two minutes, and a sidecar reads it some seconds later.
constexpr auto kTakesEffect = 5min;

Result<net::Credentials> operator_credentials(const net::PemPair& ca, const Validity& valid) {
  BSP_TRY(net::PemPair own, net::issue_certificate(ca, {.identity = std::string(names::kOperatorIdentity),
                                                        .dns_names = {},
                                                        .addresses = {},
                                                        .not_before = valid.from,
                                                        .not_after = valid.to}));
  return net::Credentials{ca.certificate, std::move(own.certificate), std::move(own.key)};
}

}  // namespace

// Its key is always the same, so what an operator before us signed is good, and what we sign is for who knows its CA only.
Result<std::shared_ptr<const Signer>> Certificates::make_signer(const crds::BspJob& job, const Validity& valid) const {
  const std::string name = std::format("bspjob-{}", job_.uid);
  // A job must be removable whatever has become of the seed; its sidecars are not needed for that.
  const bool goes = job.metadata.deletion_timestamp != Time{};
  std::string seed;
  if (!goes) {
    BSP_TRY(seed, authority_.seed());
  }
  BSP_TRY(net::PemPair ca,
          goes ? net::create_ca(name, valid.from, valid.to) : net::derive_ca(seed, name, valid.from, valid.to));
  Signer signer{.ca = std::move(ca), .end = valid.to};
  if (!goes) {
    BSP_TRY(signer.sets, own_sets(seed, job_.uid));
    signer.sets_of = [seed, at = job_.at.name_space](const std::string& uid, const std::string& grant) {
      return granted_sets(seed, at, uid, grant);
    };
    signer.grant = [seed, at = job_.at.name_space](const std::string& uid) { return grant_of(seed, at, uid); };
  }
  return std::make_shared<const Signer>(std::move(signer));
}

Result<void> Certificates::begin(const crds::BspJob& job) {
  const Validity valid = validity_from(SystemClock::now());
  BSP_TRY(signer_, make_signer(job, valid));
  BSP_TRY(net::Credentials own, operator_credentials(signer_->ca, valid));
  tls_ = net::TlsContext::create_late(std::move(own));
  made_ = job.metadata.creation_timestamp;
  return {};
}

void Certificates::renew_if_due(const crds::BspJob& job, bool untrusted, PodMaker& pods) {
  if (job.metadata.deletion_timestamp != Time{} || crds::is_finished(job.status.phase)) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < again_) return;  // what came before the last renewal took effect does not count
  // Secrets are written here, and a wave doesn't wait for those of a certificate that is still good.
  if (!untrusted && job.status.phase == crds::JobPhase::kMigrating) return;
  if (!untrusted && !must_renew(made_, SystemClock::now())) return;
  const std::string name = job_.key();
  if (const auto renewed = renew(job, pods); !renewed) {
    again_ = now + kTryAgain;
    if (not_renewed_.is_news(renewed.error().message)) {
      log_warning("failed to renew a job's certificates", {{"job", name}, {"error", renewed.error().message}});
      events_.add({"Warning", "CertificatesNotRenewed", renewed.error().message});
    }
    return;
  }
  not_renewed_.clear();
  again_ = now + kTakesEffect;
  log_info("a job's certificates are renewed",
           {{"job", name}, {"reason", untrusted ? "one was not accepted" : "they were made long ago"}});
}

// The pods' first: an operator that dies in between finds nothing changed, and begins again.
Result<void> Certificates::renew(const crds::BspJob& job, PodMaker& pods) {
  const Time now = SystemClock::now();
  const Validity valid = validity_from(now);
  BSP_TRY(signer_, make_signer(job, valid));
  std::set<std::string> written;
  for (const kube::Object& pod : cache_.find(kPod, kByJob, job_.key())) {
    const PodRequest request = request_of(pod);
    if (has_ended(pod) || !written.insert(secret_name({job_.at.name, job_.uid}, request)).second) continue;
    BSP_CHECK_OK(pods.write_secret(job, request, *signer_));
  }
  BSP_TRY(const net::Credentials own, operator_credentials(signer_->ca, valid));
  BSP_CHECK_OK(tls_.renew(own));
  made_ = now;
  return {};
}

}  // namespace bsp::reconcile
