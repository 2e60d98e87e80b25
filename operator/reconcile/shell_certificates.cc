// Who may talk to whom in a job: its CA, the operator's own certificate, and one for each pod, in Secrets that the pods'
// kubelets show them again when they change.
#include <algorithm>
#include <format>
#include <set>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/shell_job.h"

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
Result<net::PemPair> JobShell::make_ca(const crds::BspJob& job, const Validity& valid) const {
  const std::string name = std::format("bspjob-{}", uid_);
  // A job must be able to go, whatever has become of the seed, and nothing is asked of its sidecars then.
  if (job.metadata.deletion_timestamp != Time{}) return net::create_ca(name, valid.from, valid.to);
  BSP_TRY(const std::string seed, authority_.seed());
  return net::derive_ca(seed, name, valid.from, valid.to);
}

// The operator's own certificate, and with it the links to the sidecars.
Result<void> JobShell::connect(const crds::BspJob& job) {
  const Validity valid = validity_from(clock_.now());
  BSP_TRY(ca_, make_ca(job, valid));
  ca_end_ = valid.to;
  BSP_TRY(net::Credentials own, operator_credentials(*ca_, valid));
  tls_ = net::TlsContext::create_late(std::move(own));
  certificates_made_ = job.metadata.creation_timestamp;
  sidecars_ = std::make_unique<Sidecars>(sidecar_thread_, Sidecars::Options{.tls = tls_, .changed = changed_});
  return {};
}

// All of a job's certificates together: by their age, or because somebody does not accept one. Whatever is wrong with them
// (a lost seed, a clock that was wrong when they were made, a Secret that somebody has changed) is put right so.
void JobShell::renew_if_due(const crds::BspJob& job) {
  if (job.metadata.deletion_timestamp != Time{} || crds::is_finished(job.status.phase)) return;
  const bool untrusted = sidecars_->take_untrusted();  // and not again what came before the last renewal took effect
  const auto now = std::chrono::steady_clock::now();
  if (now < renew_again_) return;
  if (!untrusted && !must_renew(certificates_made_, clock_.now())) return;
  const std::string name = job_key(at_.name_space, at_.name);
  if (const auto renewed = renew(job); !renewed) {
    renew_again_ = now + kTryAgain;
    if (not_renewed_.is_news(renewed.error().message)) {
      log_warning("renewing a job's certificates failed", {{"job", name}, {"error", renewed.error().message}});
      events_.tell(job, {"Warning", "CertificatesNotRenewed", renewed.error().message});
    }
    return;
  }
  not_renewed_.clear();
  renew_again_ = now + kTakesEffect;
  log_info("a job's certificates are renewed",
           {{"job", name}, {"why", untrusted ? "one was not accepted" : "they were made long ago"}});
}

// The pods' first: an operator that dies in between finds nothing changed, and begins again.
Result<void> JobShell::renew(const crds::BspJob& job) {
  const Time now = clock_.now();
  const Validity valid = validity_from(now);
  BSP_TRY(ca_, make_ca(job, valid));
  ca_end_ = valid.to;
  std::set<std::string> written;
  for (const kube::Object& pod : cache_.find(kPod, kByJob, job_key(at_.name_space, at_.name))) {
    const PodRequest request = request_of(pod);
    if (has_ended(pod) || !written.insert(secret_name({at_.name, uid_}, request)).second) continue;
    BSP_CHECK_OK(write_secret(job, request));
  }
  BSP_TRY(const net::Credentials own, operator_credentials(*ca_, valid));
  BSP_CHECK_OK(tls_.renew(own));
  certificates_made_ = now;
  return {};
}

// The keys of a pod, and of those that share their Secret with it: every pod that mounts it finds its part there.
Result<void> JobShell::write_secret(const crds::BspJob& job, const PodRequest& request) {
  const std::string name = secret_name({at_.name, uid_}, request);
  std::set<std::string> pods{pod_name(at_.name, request.rank, request.generation)};
  if (!request.target) {
    const std::size_t first = request.rank - request.rank % kPodsPerSecret;
    const std::size_t end = std::min<std::size_t>(first + kPodsPerSecret, job.status.ranks.size());
    for (std::size_t rank = first; rank < end; ++rank) pods.insert(job.status.ranks[rank].pod);
    for (const kube::Object& pod : cache_.find(kPod, kByJob, job_key(at_.name_space, at_.name)))
      if (secret_name({at_.name, uid_}, request_of(pod)) == name) pods.insert(kube::metadata_text(pod, "name"));
  }
  std::map<std::string, std::string> files{{"ca.pem", ca_->certificate}};
  for (const std::string& pod : pods) {
    BSP_TRY(net::PemPair pair, net::issue_certificate(*ca_, {.identity = pod,
                                                             .dns_names = {},
                                                             .addresses = {},
                                                             .not_before = clock_.now() - kBackDated,
                                                             .not_after = ca_end_}));
    files[certificate_file(pod)] = std::move(pair.certificate);
    files[key_file(pod)] = std::move(pair.key);
  }
  const kube::Object secret = make_secret(job, name, files);
  auto stored = client_.create(secret);
  // Made before, by us or an operator before us, or put there by somebody who knows the job's uid: what counts is ours.
  if (!stored && stored.error().code == ErrorCode::kConflict) stored = client_.update(secret);
  if (!stored) return std::unexpected(stored.error().in("Secret " + name));
  return {};
}

}  // namespace bsp::reconcile
