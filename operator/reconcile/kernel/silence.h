// What follows from a sidecar that does not answer the operator: by itself, nothing. It is the operator that does not
// hear, and the fault may be its own.
//
//   who says that a rank is gone         and then
//   the kubelet, the pod object's end    it is (failure.cc), at once
//   its node does not answer the API     it is, if no other rank's sidecar hears it either, after JobLimits::unreachable
//   neither                              it is, if no other rank's sidecar hears it either, after JobLimits::isolated: by
//                                        then a program that is cut off has been ended (sidecar/agent/fence.h) and its kubelet
//                                        has said so; what is left is one that stands at a gate
//
// A rank that completes supersteps with the others is heard by them. Where no other rank can be asked (there is one
// only, or none answers) the operator waits. Where most sidecars of a job, or of all jobs, are silent without their
// nodes being to blame, the operator suspects itself, and nobody's word counts. Whatever it concludes, the next copy of a
// rank starts only when the last one has ended (lost_pods.h).
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/kernel/job.h"

namespace bsp::reconcile {

struct Silence {
  struct Rank {
    std::uint32_t rank = 0;
    std::string pod;
    SteadyTime since{};
    bool gone = false;
    std::string text;  // a sentence about it
  };
  std::vector<Rank> ranks;  // silent for longer than JobLimits::unreachable
  std::string own_fault;    // why the operator suspects itself; "": it does not
};

// Of the ranks that should be there; those on nodes that do not answer the API are left out, for that explains it.
Hearing hearing_of(const Observed& o);
Silence judge_silence(const Observed& o, const JobLimits& limits);

// Types of conditions.
inline constexpr const char* kOperatorCutOff = "OperatorCutOff";
inline constexpr const char* kSidecarSilent = "SidecarSilent";
// Turns both. Which have just turned to True; `changed`: whether either differs from what it was.
std::vector<const char*> warn_of_silence(const Observed& o, const Silence& silence, crds::BspJobStatus& status,
                                         bool& changed);

}  // namespace bsp::reconcile
