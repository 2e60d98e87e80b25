// A job whose status is gone (patched away, or restored from a backup without it) while its pods exist: what its pods and
// sidecars say becomes its status again, if they leave no doubt which process is which rank.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr Duration kRebuildLimit = std::chrono::seconds(30);  // for pods that don't show it yet
inline constexpr const char* kStatusRebuilt = "StatusRebuilt";
inline constexpr const char* kStatusLost = "StatusLost";

// Nothing of a first attempt is stored yet, or it is stored no more.
bool is_blank(const crds::BspJobStatus& status);

struct RebuildLater {
  std::string why;
};
struct RebuildWithout {  // targets that hold no rank
  std::vector<std::string> pods;
};
struct CannotRebuild {
  std::string why;
};
using Rebuilt = std::variant<crds::BspJobStatus, RebuildLater, RebuildWithout, CannotRebuild>;

// A status in phase Running, or Succeeded if every rank has ended with exit code 0. Never one whose ranks may have been
// about to change pods: only the lost status said which of two pods may go on.
Rebuilt rebuild_status(const Observed& o);
// One more than the highest epoch that any sidecar knows; 0: none knows one.
std::uint64_t epochs_seen(const Observed& o);

}  // namespace bsp::reconcile
