// Strong ids: the compiler rejects a rank where a Set or a superstep belongs.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace bsp {

template <class Tag, class Value>
struct Id {
  Value value{};
  constexpr auto operator<=>(const Id&) const = default;
};

using RankId = Id<struct RankTag, std::uint32_t>;            // MPI rank, 0-based
using SetId = Id<struct SetTag, std::uint32_t>;              // index of a Set (node pool) in its table
using ProcessorId = Id<struct ProcessorTag, std::uint32_t>;  // a node, or a share of one, that runs ranks
using Superstep = Id<struct SuperstepTag, std::uint64_t>;    // 1-based; 0 means none yet
using Epoch = Id<struct EpochTag, std::uint64_t>;            // 0-based number of a PMIx namespace

}  // namespace bsp

template <class Tag, class Value>
struct std::hash<bsp::Id<Tag, Value>> {
  std::size_t operator()(const bsp::Id<Tag, Value>& id) const noexcept { return std::hash<Value>{}(id.value); }
};
