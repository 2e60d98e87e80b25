// Where the ranks start (the five initial mappings of the MigBSP papers).
//
//   Contiguous  fill a Set, go on to the next, wrap around
//   Ascending   cyclic over the processors, the slowest first
//   Descending  cyclic over the processors, the fastest first
//   CPU         each rank to the processor with the largest cpu / (ranks already there + 1)
//   RoundRobin  cyclic over the Sets: one rank to the next processor of each Set in turn
//
// Ranks are placed in order 0, 1, 2, …. Where nothing decides, the smaller processor index goes
// first. Processors take no more ranks than they have free slots; those without a limit (slots = 0)
// take one rank each round. Cordoned processors and Sets take none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/decide/model/model.h"

namespace bsp::decide {

Result<Mapping> mapping_named(std::string_view name);

// The processor of each rank. kNoSpace, with the remedy, if the free slots are fewer than the
// ranks.
Result<std::vector<ProcessorId>> initial_mapping(Mapping mapping, std::uint32_t ranks, const Platform& platform);

}  // namespace bsp::decide
