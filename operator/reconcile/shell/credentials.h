// How long certificates hold, and when a job's are made again. Pure.
#pragma once

#include <chrono>

#include "base/core/clock.h"

namespace bsp::reconcile {

// Clocks of operators and nodes may be that far apart.
inline constexpr auto kBackDated = std::chrono::hours(1);
inline constexpr auto kValidity = std::chrono::days(365);
// Of all of a job together. By then three quarters of their time are left for whatever keeps them from being renewed.
inline constexpr auto kRenewAfter = kValidity / 4;

struct Validity {
  Time from, to;
};
inline Validity validity_from(Time now) { return {now - kBackDated, now + kValidity}; }

// `made`: when the oldest certificate of the job was, by the clock of who made it, which may have been set back since.
inline bool must_renew(Time made, Time now) { return now >= made + kRenewAfter || now + kBackDated < made; }

}  // namespace bsp::reconcile
