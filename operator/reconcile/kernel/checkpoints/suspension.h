// A job that is to be suspended, by its user or by Kueue, first makes a checkpoint set:
//
//   runs ──held──> a set is made and stored ──> its pods go
//                     │ spec.checkpoint.grace is over, or the set was abandoned kLastTries times ──> they go all the same
//                     └ held no more ──> it runs on, in the same pods
//
// A job without storage has nothing to wait for.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr const char* kSuspending = "Suspending";
inline constexpr std::uint64_t kLastTries = 2;

// Call while the ranks run. True: the status has changed.
bool note_hold(const Observed& o, bool held, std::vector<Event>& events, crds::BspJobStatus& status);

// Of a job that is held and runs.
enum class LastSet {
  kDue,      // to be begun
  kAwaited,  // a rank can't be dumped yet, or the storage has not taken all of it
  kSettled,  // it is stored, or none will be: the pods may go
};
LastSet last_set(const Observed& o);
// That wave makes such a set, and may go on.
bool makes_last_set(const migrate::Wave& wave, const Observed& o);

// The pods go: nothing of it is left in the status but what there is to say.
void end_hold(crds::BspJobStatus& status);

// Where the job goes on once it is resumed, and what is lost, to follow a sentence: "; …". "" if it has computed nothing.
std::string what_is_kept(const crds::BspJobSpec& spec, const crds::BspJobStatus& status);

}  // namespace bsp::reconcile
