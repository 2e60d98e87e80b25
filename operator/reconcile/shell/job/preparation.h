// What a job needs before it can be reconciled: finalizer, NetworkPolicy, certificates, links to its sidecars.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/reconcile/shell/job/certificates.h"
#include "operator/reconcile/shell/job/isolation.h"
#include "operator/reconcile/shell/job/status_writer.h"
#include "operator/reconcile/shell/job/stored_job.h"
#include "operator/reconcile/shell/links/links.h"
#include "operator/reconcile/shell/trouble.h"

namespace bsp::reconcile {

struct Prepared {
  Sidecars& sidecars;
  const std::shared_ptr<const Signer> signer;  // of its pods' certificates
};

class Preparation {
 public:
  Preparation(const JobParts& parts, StoredJob& stored, StatusWriter& status, PodMaker& pods)
      : parts_(parts), stored_(stored), status_(status), pods_(pods), isolation_(parts), certificates_(parts) {}

  // nullopt: try again later; the status of a job that hasn't begun says why.
  std::optional<Prepared> prepare(const crds::BspJob& job);
  // Only the links, of a job of which no more need be known than its metadata.
  Result<Sidecars*> link(const crds::BspJob& job);
  // Of a job that isn't reconciled: nobody asks its sidecars, whose pods go, until it is prepared again.
  void close_links() { sidecars_.reset(); }

 private:
  Result<void> complete(const crds::BspJob& job);
  Result<void> add_finalizer(const crds::BspJob& job);
  void report(const std::string& problem);

  const JobParts& parts_;
  StoredJob& stored_;
  StatusWriter& status_;
  PodMaker& pods_;
  NetworkIsolation isolation_;
  Certificates certificates_;
  std::unique_ptr<Sidecars> sidecars_;
  Trouble not_prepared_;
};

}  // namespace bsp::reconcile
