// A job with spec.restoreFrom begins with a checkpoint set of another job: it takes the set over into its own status, as if it had made
// it, before its first attempt. The files stay that job's.
#pragma once

#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr const char* kWaitingForSource = "WaitingForSource";
inline constexpr const char* kNoSetToRestore = "NoSetToRestore";

struct Adoption {
  bool waits = false;   // the other job may come yet
  std::string trouble;  // why nothing was taken over; "": the job has its set, or wants none
};
Adoption adopt_set(const Observed& o, crds::BspJobStatus& status);

// The attempt starts from another job's set, and there is no other to start from.
bool is_last_adopted(const crds::StoredSet& set, const crds::BspJobStatus& status);

}  // namespace bsp::reconcile
