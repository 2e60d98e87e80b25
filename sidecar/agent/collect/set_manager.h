// The Set Manager: answers one request of the operator for all ranks of a Set, so that the operator's connections and
// messages grow with the number of Sets instead of the number of ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/net/link.h"
#include "crds/wire.h"

namespace bsp::collect {

struct SetMember {
  std::uint32_t rank = 0;
  std::string pod;
  std::string address;
  std::uint64_t since = 0;
  std::uint32_t seat = 0;
};

Result<std::vector<SetMember>> members_from_json(const nlohmann::json& fields);

// What each member may send.
struct SetLimits {
  std::size_t most_bytes = 0;  // all reports together
  std::uint64_t every = 1;     // wire::sampled()
};

struct SetReport {
  std::map<std::uint32_t, nlohmann::json> reports;  // by rank, as their sidecars sent them: the operator validates them
  std::vector<std::uint32_t> missing;               // ranks that didn't answer in time
};

// Asks every other member at once and calls `done` when all have answered or `timeout` has expired. Must be called in
// the loop's thread and calls back there. `peer` returns the link to a member, `own` the report of one in this pod.
//
// All reports together fit into `limits.most_bytes`, of which every member gets an equal share. A superstep counts only once
// the records of all ranks have arrived, so no rank may get far ahead of the others while their rings wrap around.
void collect_set(const std::vector<SetMember>& members, const SetLimits& limits,
                 const std::function<net::LinkPeer*(const SetMember&)>& peer,
                 const std::function<std::optional<wire::RankReport>(const SetMember&)>& own,
                 std::chrono::nanoseconds timeout, std::function<void(SetReport)> done);

}  // namespace bsp::collect
