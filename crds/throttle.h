// What a CPU limit does to a rank, as its sidecar tells it.
//
// Member kThrottled of a sidecar's status (crds/wire.h), beside the fields of wire::RankStatus: the fraction of the
// last kThrottleWindow for which the kernel held the app container back, 0 to 1. Written by the sidecar from what
// bsp-init reads in the container's own cpu.stat; a node or a pod that is slow for another reason does not count.
#pragma once

#include <chrono>
#include <string_view>

namespace bsp::wire {

inline constexpr std::string_view kThrottled = "throttled";
inline constexpr std::chrono::seconds kThrottleWindow{10};

}  // namespace bsp::wire
