// The job that a part of the shell works for.
#pragma once

#include <string>

#include "crds/bspjob.h"
#include "operator/kinds.h"
#include "operator/reconcile/shell/objects.h"

namespace bsp::reconcile {

struct JobRef {
  kube::Key at;
  std::string uid;

  [[nodiscard]] std::string key() const { return job_key(at.name_space, at.name); }
  [[nodiscard]] kube::Key own(const kube::Kind& kind, const std::string& name) const {
    return {kind, at.name_space, name};
  }
  // Owned by this job, and not by a deleted one of the same name.
  [[nodiscard]] bool owns(const kube::Object& object) const { return owner_of(object).uid == uid; }
  // Its metadata only, for an event.
  [[nodiscard]] crds::BspJob named() const {
    crds::BspJob job;
    job.metadata.name = at.name;
    job.metadata.name_space = at.name_space;
    job.metadata.uid = uid;
    return job;
  }
};

}  // namespace bsp::reconcile
