// A seat: where a rank's program runs, a container of a pod. Its sidecar, address and certificate are the pod's; run
// directory, memory limit and log are the seat's own.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crds/wire.h"

namespace bsp {

struct Seat {
  std::string pod;
  std::uint32_t local = 0;  // 0: container app, 1: app-1, …

  auto operator<=>(const Seat&) const = default;
};

Seat seat_of(const wire::Member& member);

// For people: the pod's name, with that of the container where it isn't the first, as in job-r0-g0/app-2.
std::string name_of(const Seat& seat);

// The name of that container.
std::string container_of(std::uint32_t local);
// What a volume of the pod has for that seat alone, where it has several: seat-2.
std::string directory_of_seat(std::uint32_t local);
// Of a container's name; nullopt: it is no seat's.
std::optional<std::uint32_t> local_of(std::string_view container);

}  // namespace bsp
