// Where a job's ranks are, in its status: as the operator works with it, and as it is stored (README.md, "Size").
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/core/fields.h"
#include "base/core/ids.h"
#include "crds/rank_groups.h"
#include "crds/seat.h"
#include "crds/wire.h"

namespace bsp::crds {

// --- status.ranks ----------------------------------------------------------------------------------
struct RankPlace {
  RankId rank;
  std::string set;
  std::string node;
  std::string pod;
  std::uint32_t generation = 0;  // pods made for the rank so far; the next is <job>-r<rank>-g<generation>
  double time_seconds = 0;       // its superstep time (computation + communication + edge), last window's mean
  double compute_seconds = 0;    // of that, computation
  std::uint64_t memory_bytes = 0;
  std::string blocked_reason;  // "not migratable now: …"; empty: migratable
  std::uint32_t local = 0;     // of its seat in the pod

  [[nodiscard]] Seat seat() const { return {pod, local}; }
};
constexpr void fields_of(Of<RankPlace>, auto&& v) {
  v("rank", &RankPlace::rank);
  v("set", &RankPlace::set);
  v("node", &RankPlace::node);
  v("pod", &RankPlace::pod);
  v("generation", &RankPlace::generation);
  v("timeSeconds", &RankPlace::time_seconds);
  v("computeSeconds", &RankPlace::compute_seconds);
  v("memoryBytes", &RankPlace::memory_bytes);
  v("blockedReason", &RankPlace::blocked_reason);
  v("seat", &RankPlace::local, kRare);
}

// The seat after that of the rank before, in the same pod.
inline constexpr const char* kNextSeat = "next";

// The generation of the pod's successor, by the pod's name.
std::uint32_t generation_after(const std::string& pod);

// Bounds what a short text can describe; a cluster has at most 150,000 pods.
inline constexpr std::uint64_t kMostPacked = 150'000;

// The same, by value: each map leads from a value to the ranks that have it, "0-49,77".
struct PackedPlaces {
  std::uint32_t count = 0;
  RankGroups place;            // "<set>/<node>"
  RankGroups pod;              // "<job>-r*-g0": the rank's number, less that of its seat, stands for the star
  RankGroups seat;             // kNextSeat, or the number, if it isn't 0
  RankGroups generation;       // where it isn't one more than the pod's
  RankGroups time_seconds;     // four significant digits
  RankGroups compute_seconds;  // the same, of the slowest ranks
  RankGroups memory;           // "64Mi", rounded up
  RankGroups blocked_reason;   // the most common
};
constexpr void fields_of(Of<PackedPlaces>, auto&& v) {
  v("count", &PackedPlaces::count, Field{.required = true, .most = kMostPacked});
  v("place", &PackedPlaces::place);
  v("pod", &PackedPlaces::pod);
  v("seat", &PackedPlaces::seat, kRare);
  v("generation", &PackedPlaces::generation);
  v("timeSeconds", &PackedPlaces::time_seconds);
  v("computeSeconds", &PackedPlaces::compute_seconds);
  v("memory", &PackedPlaces::memory);
  v("blockedReason", &PackedPlaces::blocked_reason);
}

// What only informs is stored of this many: the slowest ranks, the most common reasons.
inline constexpr std::size_t kShownRanks = 128, kShownReasons = 16;

struct RankPlaces : std::vector<RankPlace> {  // index = rank
  using std::vector<RankPlace>::vector;
  using Plain = std::vector<RankPlace>;  // as older operators stored it
  using Packed = PackedPlaces;
  static bool is_plain(const nlohmann::json& stored);
};
PackedPlaces pack(const RankPlaces& places);
Result<void> unpack(const PackedPlaces& packed, RankPlaces& places);

// --- status.epoch ----------------------------------------------------------------------------------
struct PackedMembers {
  std::uint32_t count = 0;
  RankGroups pod;       // "<set>/<job>-r*-g0"
  RankGroups seat;      // as in PackedPlaces
  std::string pod_uid;  // of each rank (rank_groups.h)
  std::string address;  // the same
};
constexpr void fields_of(Of<PackedMembers>, auto&& v) {
  v("count", &PackedMembers::count, Field{.required = true, .most = kMostPacked});
  v("pod", &PackedMembers::pod);
  v("seat", &PackedMembers::seat, kRare);
  v("pod_uid", &PackedMembers::pod_uid);
  v("address", &PackedMembers::address);
}

struct PackedEpoch {
  std::uint64_t epoch = 0;
  std::string pmix_namespace;
  std::vector<std::string> sets;
  PackedMembers members;
  std::uint64_t cpu_level = 0;
};
constexpr void fields_of(Of<PackedEpoch>, auto&& v) {
  v("epoch", &PackedEpoch::epoch, kRequired);
  v("pmix_namespace", &PackedEpoch::pmix_namespace, kRequired);
  v("sets", &PackedEpoch::sets, Field{.most = wire::kMostMembers});
  v("members", &PackedEpoch::members, kRequired);
  v("cpu_level", &PackedEpoch::cpu_level, kRare);
}

struct CommittedEpoch : wire::EpochPlan {
  CommittedEpoch() = default;
  CommittedEpoch(wire::EpochPlan plan) : wire::EpochPlan(std::move(plan)) {}  // NOLINT(google-explicit-constructor)
  using Plain = wire::EpochPlan;  // as it goes to sidecars, and older operators stored it
  using Packed = PackedEpoch;
  static bool is_plain(const nlohmann::json& stored);
};
PackedEpoch pack(const CommittedEpoch& epoch);
Result<void> unpack(const PackedEpoch& packed, CommittedEpoch& epoch);

}  // namespace bsp::crds
