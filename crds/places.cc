#include "crds/places.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "crds/meta.h"

namespace bsp::crds {
namespace {

std::string infix_of(std::size_t rank) { return std::format("-r{}-", rank); }

// <job>-r16-g0 as <job>-r*-g0, of rank 17 in seat 1. No pod's name has a star.
std::string starred(const std::string& pod, std::size_t rank, std::uint32_t local) {
  if (rank < local) return pod;
  const std::string infix = infix_of(rank - local);
  const std::size_t at = pod.rfind(infix);
  return at == std::string::npos ? pod : pod.substr(0, at) + "-r*-" + pod.substr(at + infix.size());
}
std::string unstarred(const std::string& pod, std::size_t rank, std::uint32_t local) {
  const std::size_t at = pod.rfind("-r*-");
  return at == std::string::npos || rank < local ? pod
                                                 : pod.substr(0, at) + infix_of(rank - local) + pod.substr(at + 4);
}

// `seat_at(i)`: of rank i.
RankGroups seats_of(std::size_t ranks, const auto& seat_at) {
  return group_ranks(ranks, [&](std::size_t i) -> std::string {
    const Seat seat = seat_at(i);
    if (seat.local == 0) return "";
    const bool next = i > 0 && seat_at(i - 1) == Seat{seat.pod, seat.local - 1};
    return next ? kNextSeat : std::to_string(seat.local);
  });
}

// By rank.
Result<std::vector<std::uint32_t>> seats_in(const RankGroups& groups, std::size_t ranks) {
  std::vector<std::uint32_t> seats(ranks);
  std::vector<std::size_t> next;
  BSP_CHECK_OK(ungroup_ranks(groups, ranks, [&](std::size_t i, const std::string& value) -> Result<void> {
    if (value == kNextSeat) return next.push_back(i), Result<void>{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seats[i]);
    if (error == std::errc{} && end == value.data() + value.size() && seats[i] < wire::kMostSeats) return {};
    return fail(ErrorCode::kInvalid,
                std::format("{}: must be the number of a seat, below {}", value, wire::kMostSeats));
  }));
  std::ranges::sort(next);
  for (const std::size_t i : next) {
    if (i == 0 || seats[i - 1] + 1 >= wire::kMostSeats)
      return fail(ErrorCode::kInvalid, std::format("{}: rank {} follows no seat", kNextSeat, i));
    seats[i] = seats[i - 1] + 1;
  }
  return seats;
}

// No node, pod or Set has a slash in its name.
std::string joined(const std::string& set, const std::string& name) {
  return set.empty() && name.empty() ? "" : set + "/" + name;
}
std::pair<std::string, std::string> parted(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  return slash == std::string::npos ? std::pair(std::string(), text)
                                    : std::pair(text.substr(0, slash), text.substr(slash + 1));
}

std::string number_text(double number) {
  return number != 0 && std::isfinite(number) ? std::format("{:.4g}", number) : "";
}
Result<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(number))
    return fail(ErrorCode::kInvalid, std::format("{}: must be a finite number", text));
  return number;
}

// The least time among the slowest ranks, so many as are shown.
double least_shown(const RankPlaces& places) {
  std::vector<double> times;
  for (const RankPlace& place : places) times.push_back(place.compute_seconds);
  if (times.size() <= kShownRanks) return 0;
  std::ranges::nth_element(times, times.begin() + kShownRanks - 1, std::greater{});
  return times[kShownRanks - 1];
}

// Keeps the commonest reasons word for word; of the others it says only that there is one.
RankGroups reasons_of(const RankPlaces& places) {
  std::map<std::string, std::size_t> ranks;
  for (const RankPlace& place : places)
    if (!place.blocked_reason.empty()) ++ranks[place.blocked_reason];
  std::vector<std::pair<std::size_t, std::string>> by_number;
  for (const auto& [reason, n] : ranks) by_number.emplace_back(n, reason);
  std::ranges::stable_sort(by_number, std::greater{}, &std::pair<std::size_t, std::string>::first);
  for (std::size_t i = kShownReasons; i < by_number.size(); ++i) ranks.erase(by_number[i].second);
  return group_ranks(places.size(), [&](std::size_t i) -> std::string {
    const std::string& reason = places[i].blocked_reason;
    return reason.empty() || ranks.contains(reason) ? reason : "not migratable now: the pod's log says why";
  });
}

Result<void> in_field(std::string_view field, Result<void> result) {
  if (!result) result.error().message = std::format("{}: {}", field, result.error().message);
  return result;
}

}  // namespace

std::uint32_t generation_after(const std::string& pod) {
  const std::size_t at = pod.rfind("-g");
  return at == std::string::npos ? 0 : static_cast<std::uint32_t>(std::strtoul(pod.c_str() + at + 2, nullptr, 10)) + 1;
}

bool RankPlaces::is_plain(const nlohmann::json& stored) { return stored.is_array(); }

PackedPlaces pack(const RankPlaces& places) {
  const double least = least_shown(places);
  auto group = [&](auto value_of) {
    return group_ranks(places.size(), [&](std::size_t i) { return value_of(i, places[i]); });
  };
  using Place = const RankPlace&;
  PackedPlaces packed;
  packed.count = static_cast<std::uint32_t>(places.size());
  packed.place = group([](std::size_t, Place p) { return joined(p.set, p.node); });
  packed.pod = group([](std::size_t i, Place p) { return starred(p.pod, i, p.local); });
  packed.seat = seats_of(places.size(), [&](std::size_t i) { return places[i].seat(); });
  packed.generation = group(
      [](std::size_t, Place p) { return p.generation == generation_after(p.pod) ? "" : std::to_string(p.generation); });
  packed.time_seconds = group([](std::size_t, Place p) { return number_text(p.time_seconds); });
  packed.compute_seconds =
      group([&](std::size_t, Place p) { return p.compute_seconds >= least ? number_text(p.compute_seconds) : ""; });
  packed.memory = group([](std::size_t, Place p) {
    return p.memory_bytes == 0 ? "" : std::format("{}Mi", ((p.memory_bytes - 1) >> 20) + 1);
  });
  packed.blocked_reason = reasons_of(places);
  return packed;
}

Result<void> unpack(const PackedPlaces& packed, RankPlaces& places) {
  places.assign(packed.count, {});
  for (std::uint32_t i = 0; i < packed.count; ++i) places[i].rank = {i};
  auto read = [&](std::string_view field, const RankGroups& groups, auto set) {
    return in_field(field,
                    ungroup_ranks(groups, places.size(), [&](std::size_t i, const std::string& value) -> Result<void> {
                      return set(places[i], value);
                    }));
  };
  using Good = Result<void>;
  BSP_CHECK_OK(read("place", packed.place, [](RankPlace& p, const std::string& value) -> Good {
    std::tie(p.set, p.node) = parted(value);
    return {};
  }));
  auto seats = seats_in(packed.seat, places.size());
  if (!seats) return in_field("seat", std::unexpected(seats.error()));
  for (std::uint32_t i = 0; i < packed.count; ++i) places[i].local = (*seats)[i];
  BSP_CHECK_OK(read("pod", packed.pod, [](RankPlace& p, const std::string& value) -> Good {
    p.pod = unstarred(value, p.rank.value, p.local);
    return {};
  }));
  for (RankPlace& p : places) p.generation = generation_after(p.pod);
  BSP_CHECK_OK(read("generation", packed.generation, [](RankPlace& p, const std::string& value) -> Good {
    BSP_TRY(const double number, number_in(value));
    p.generation = number >= 0 && number <= UINT32_MAX ? static_cast<std::uint32_t>(number) : 0;
    return {};
  }));
  BSP_CHECK_OK(read("timeSeconds", packed.time_seconds, [](RankPlace& p, const std::string& value) -> Good {
    BSP_TRY(p.time_seconds, number_in(value));
    return {};
  }));
  BSP_CHECK_OK(read("computeSeconds", packed.compute_seconds, [](RankPlace& p, const std::string& value) -> Good {
    BSP_TRY(p.compute_seconds, number_in(value));
    return {};
  }));
  BSP_CHECK_OK(read("memory", packed.memory, [](RankPlace& p, const std::string& value) -> Good {
    BSP_TRY(p.memory_bytes, quantity_value(value));
    return {};
  }));
  return read("blockedReason", packed.blocked_reason, [](RankPlace& p, const std::string& value) -> Good {
    p.blocked_reason = value;
    return {};
  });
}

bool CommittedEpoch::is_plain(const nlohmann::json& stored) { return part_at(stored, "members").is_array(); }

PackedEpoch pack(const CommittedEpoch& epoch) {
  PackedEpoch packed{epoch.epoch, epoch.pmix_namespace, epoch.sets, {}, epoch.cpu_level};
  const auto& members = epoch.members;
  packed.members.count = static_cast<std::uint32_t>(members.size());
  packed.members.pod = group_ranks(members.size(), [&](std::size_t i) {
    const wire::Member& member = members[i];
    return joined(member.set < epoch.sets.size() ? epoch.sets[member.set] : "", starred(member.pod, i, member.seat));
  });
  packed.members.seat = seats_of(members.size(), [&](std::size_t i) { return seat_of(members[i]); });
  std::vector<std::string> uids, addresses;
  for (const wire::Member& member : members) {
    uids.push_back(member.pod_uid);
    addresses.push_back(member.address);
  }
  packed.members.pod_uid = pack_uids(uids);
  packed.members.address = pack_addresses(addresses);
  return packed;
}

Result<void> unpack(const PackedEpoch& packed, CommittedEpoch& epoch) {
  epoch.epoch = packed.epoch;
  epoch.pmix_namespace = packed.pmix_namespace;
  epoch.cpu_level = packed.cpu_level;
  epoch.sets = packed.sets;
  const std::uint32_t ranks = packed.members.count;
  auto uids = unpack_uids(packed.members.pod_uid, ranks);
  if (!uids) return fail(ErrorCode::kInvalid, "members.pod_uid: " + uids.error().message);
  auto addresses = unpack_addresses(packed.members.address, ranks);
  if (!addresses) return fail(ErrorCode::kInvalid, "members.address: " + addresses.error().message);
  auto seats = seats_in(packed.members.seat, ranks);
  if (!seats) return in_field("members.seat", std::unexpected(seats.error()));
  epoch.members.assign(ranks, {});
  for (std::uint32_t i = 0; i < ranks; ++i) {
    epoch.members[i].rank = i;
    epoch.members[i].seat = (*seats)[i];
    epoch.members[i].pod_uid = std::move((*uids)[i]);
    epoch.members[i].address = std::move((*addresses)[i]);
  }
  return in_field(
      "members.pod",
      ungroup_ranks(packed.members.pod, ranks, [&](std::size_t i, const std::string& value) -> Result<void> {
        const auto [set, pod] = parted(value);
        const auto at = std::ranges::find(epoch.sets, set);
        if (at == epoch.sets.end()) return fail(ErrorCode::kInvalid, std::format("{}: {} is none of sets", value, set));
        epoch.members[i].set = static_cast<std::uint32_t>(at - epoch.sets.begin());
        epoch.members[i].pod = unstarred(pod, i, epoch.members[i].seat);
        return {};
      }));
}

}  // namespace bsp::crds
