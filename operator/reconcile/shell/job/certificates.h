// Who may talk to whom in a job: its CA, the operator's own certificate, and one for each pod, in Secrets that the pods'
// kubelets show them again when they change.
#pragma once

#include <chrono>
#include <memory>

#include "base/net/tls.h"
#include "operator/reconcile/shell/credentials.h"
#include "operator/reconcile/shell/job/pod_keeper.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::reconcile {

class Certificates {
 public:
  explicit Certificates(const JobParts& parts)
      : authority_(parts.shell.authority), cache_(parts.shell.cache), job_(parts.job), events_(parts.events) {}

  // Makes the operator's own, once; tls() is good from then on.
  Result<void> begin(const crds::BspJob& job);
  // All of the job's together: by their age, or because one was not accepted (`untrusted`). That mends whatever is wrong with them: a
  // lost seed, a wrong clock when they were made, a Secret that was edited.
  void renew_if_due(const crds::BspJob& job, bool untrusted, PodMaker& pods);

  [[nodiscard]] const net::TlsContext& tls() const { return tls_; }
  [[nodiscard]] const std::shared_ptr<const Signer>& signer() const { return signer_; }

 private:
  [[nodiscard]] Result<std::shared_ptr<const Signer>> make_signer(const crds::BspJob& job, const Validity& valid) const;
  Result<void> renew(const crds::BspJob& job, PodMaker& pods);

  Authority& authority_;
  kube::Cache& cache_;
  const JobRef job_;
  const EventQueue events_;
  std::shared_ptr<const Signer> signer_;
  net::TlsContext tls_;
  Time made_{};  // none of the pods' is older
  std::chrono::steady_clock::time_point again_{};
  Trouble not_renewed_;
};

}  // namespace bsp::reconcile
