// What follows from a sidecar that does not answer the operator: by itself nothing, since the fault may be the operator's.
//
//   what reports that a rank is gone     and when it counts as gone
//   the kubelet, or a deleted pod        at once (failure.cc)
//   its node does not answer the API     if no other rank's sidecar hears it either, after JobLimits::unreachable
//   neither                              if no other rank's sidecar hears it either, after JobLimits::isolated: by then a
//                                        program that is cut off has been ended (sidecar/agent/fence.h) and its kubelet has
//                                        reported it, so it can only be a rank that waits at a gate
//
// A rank that completes supersteps with the others is heard by them. Where no other rank can be asked (there is only one,
// or none answers) the operator waits. Where most sidecars of a job, or of all jobs, are silent while their nodes answer,
// the operator suspects its own network and ignores what others report. Whatever it concludes, the next copy of a rank starts
// only when the last one has ended (lost_pods.h).
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/job.h"

namespace bsp::reconcile {

struct Silence {
  struct Rank {
    std::uint32_t rank = 0;
    Seat seat;
    SteadyTime since{};
    bool gone = false;
    std::string text;  // a sentence about it
  };
  std::vector<Rank> ranks;  // silent for longer than JobLimits::unreachable
  std::string own_fault;    // why the operator suspects itself; "": it does not
};

// Of the ranks that should answer, without those on nodes that do not answer the API.
Hearing hearing_of(const Observed& o);
Silence judge_silence(const Observed& o, const JobLimits& limits);

// Whom to ask whether they hear the sidecars that don't answer the operator: a few of those that do.
struct Inquiry {
  std::vector<const wire::Member*> asked;  // of the observed epoch
  std::vector<std::string> about;          // pods
};
Inquiry inquiry_about_silence(const Observed& o);

// Sets the conditions OperatorCutOff, SidecarSilent and CertificatesRefused, and returns those that have just become True; `changed`:
// whether either has changed at all.
std::vector<const char*> warn_of_silence(const Observed& o, const Silence& silence, crds::BspJobStatus& status,
                                         bool& changed);

}  // namespace bsp::reconcile
