// Per-rank values in a form whose size hardly grows with ranks that have much in common.
//
//   groups   {"fast/fast-1": "0-49,77", "slow/slow-3": "50-76"}     each value once, with the ranks that have it
//   lists    "10.0.3.17:7600,.18,.19,.4.2"                          a value per rank, without what it shares with the one before
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::crds {

// By value, the ranks that have it: ascending, runs as first-last.
using RankGroups = std::map<std::string, std::string>;

// A rank whose value is "" is in no group.
RankGroups group_ranks(std::size_t ranks, const std::function<std::string(std::size_t)>& value_of);
// One group: "0-49,77" of those ranks, in any order. It takes as long as there are ranks, whatever their numbers.
std::string runs_of(std::vector<std::size_t> ranks);
// Calls `take` for each rank of each group. kInvalid, naming the group, unless its text is an ascending list of ranks
// below `ranks`.
Result<void> ungroup_ranks(const RankGroups& groups, std::size_t ranks,
                           const std::function<Result<void>(std::size_t, const std::string&)>& take);

// UUIDs (RFC 9562) in 22 characters each, of base64; anything else as it is.
std::string pack_uids(const std::vector<std::string>& uids);
Result<std::vector<std::string>> unpack_uids(std::string_view text, std::size_t ranks);

// host:port. The port is omitted where it equals that of the address before. A host that begins with a separator has the
// same beginning as the one before: after 10.0.3.17, ".4.2" is 10.0.4.2.
std::string pack_addresses(const std::vector<std::string>& addresses);
Result<std::vector<std::string>> unpack_addresses(std::string_view text, std::size_t ranks);

}  // namespace bsp::crds
