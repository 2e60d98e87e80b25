// Which rank gains most by moving, and where to: the Potential of Migration (Righi et al. 2010).
//
//   ISet(j) seen from Set a = mean over the processors of j of cpu·(1−load) ÷ the same mean of Set a
//   Comp(i,j) = P_comp(i) · CTP(i) · ISet(j)              s
//   Comm(i,j) = P_comm(i,j) · BTP(i,j)                    s
//   Mem(i,j)  = M(i) · T(set(i),j) + Mig(i,j)             s
//   PM(i,j)   = Comp + Comm − Mem     for every Set j, the own one included (Mem with T(a,a))
//
// A rank whose best Set is its own leaves the list; every other appears once, with its highest PM.
// Sets that can take no rank (no processor, cordoned, no free slot) or not this rank (its target there did not come up)
// are no targets: the next best Set is. Equal PM: the own Set, then the smaller Set.
#pragma once

#include <optional>
#include <vector>

#include "operator/decide/model/plan.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// ISet[a, j]: Set j as seen from Set a. 0 where one of them has no processor.
Grid<double> iset(const Columns& columns);

struct PmList {
  std::vector<PmEntry> entries;  // decreasing PM; ties: smaller rank first
  std::vector<Stay> stays;       // the ranks that are not in it, and why
};

// Mem(i,j), s.
double Mem(const Case& c, RankId i, SetId j);

// Why rank i may move nowhere at this call, though it would like to go to `target`: something keeps it where it is, or
// it has moved just now.
std::optional<Stay> why_blocked(const Case& c, RankId i, SetId target);

PmList make_pm_list(const Case& c);

}  // namespace bsp::decide
