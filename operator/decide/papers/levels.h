// The levels of the PM list (AutoMig, Righi et al., INFOCOMP 2011): what a superstep becomes as its ranks are moved one
// after the other.
//
//   level l      the first l ranks of the PM list moved, each to the Set of its highest PM, to the
//                processor that the Set's manager picks with the earlier levels' moves already made
//   pf(l)        max_i Time(i) + max_i Comm(i,·) + max over the moved of Mem        (pf.h)
//
// Levels differ by one move, so each is made from the one before:
//   max Time     kept by the placement as the moves are made (means.h)
//   max Comm     the larger of what the moved ranks have in their new Set and what the others have in theirs; the
//                latter is a running maximum from the end of the list
//   max Mem      running maximum
// which is O(n log n + n·Sets) for all levels together. An entry whose Set has no slot left is skipped (NoCapacity)
// and the levels go on with the next; entries with PM ≤ 0 count like all others.
#pragma once

#include <span>
#include <vector>

#include "operator/decide/model/means.h"
#include "operator/decide/model/plan.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// Comm(i,·) of each rank where it is at the call. s.
std::vector<double> comm_here(const Case& c, const CommTimes& comm_of);

// What a level moves on top of the one before.
struct LevelMove {
  std::uint32_t q;  // position in the PM list
  ProcessorId to;
};

// An entry that stays.
struct LeftOut {
  std::uint32_t q;  // position in the PM list
  Reason reason;
};

struct Levels {
  std::vector<Level> levels;      // [0] is the current mapping
  std::vector<LevelMove> moves;   // [l] makes level l+1
  std::vector<LeftOut> left_out;  // the entries that have no slot or exceed max_moves
};

// `here`: what comm_here gives. Leaves `placement`, which has every rank where the snapshot has it, at the last level.
Levels make_levels(const Case& c, std::span<const PmEntry> list, std::span<const double> here, const CommTimes& comm_of,
                   Placement& placement);

}  // namespace bsp::decide
