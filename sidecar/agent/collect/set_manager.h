// The Set Manager's part: one request of the operator for all ranks of a Set, so that the operator's
// connections and messages grow with the number of Sets and not with the number of ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
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
};

Result<std::vector<SetMember>> members_from_json(const nlohmann::json& fields);

struct SetReport {
  std::map<std::uint32_t, nlohmann::json> reports;  // by rank, as their sidecars sent them: the operator judges them
  std::vector<std::uint32_t> missing;               // did not answer in time
};

// Asks every member but ourselves at once and calls `done` when all have answered or `limit` is over.
// Must be called, and calls, in the loop's thread. `peer` gives the link to a member.
//
// All reports together have room in `most_bytes`, and every member has the same share of it: a superstep counts only once
// all ranks' records of it are there, so none may be far ahead of the others while their rings go on.
void collect_set(const std::vector<SetMember>& members, std::size_t most_bytes,
                 const std::function<net::LinkPeer*(const SetMember&)>& peer,
                 const std::function<wire::RankReport(std::uint64_t since)>& own, std::uint32_t own_rank,
                 std::chrono::nanoseconds limit, std::function<void(SetReport)> done);

}  // namespace bsp::collect
