// Where a candidate goes and whether that pays (Righi et al. 2010): the test of Top, Percentage, MigCube and MigHull.
//
// The manager of the target Set j picks a processor p (processors.h); p' is the rank's own.
//   t_move = time(p with i)  + B(i,j)·T(j,j)      + Mem(i,j)
//   t_stay = time(p' with i) + B(i,j)·T(set(i),j)
// It moves only if t_move < t_stay. Candidates are tested in list order, and each accepted move
// changes the processors that the next test sees (without that, the 2016 paper found, all ranks
// go to the same place). horizon: window sums I(i) and B(i,j) over the window, superstep takes
// its last superstep; Mem counts once in both.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// Whether a heuristic wants a rank moved, and the two values that it compared.
struct Candidacy {
  bool wanted = false;
  double value = 0;  // s
  double limit = 0;  // s
};

// Tests list[q] for every q with candidacy(q).wanted, and says kNotCandidate of the others.
void move_viable(const Case& c, std::span<const PmEntry> list, const std::function<Candidacy(std::size_t q)>& candidacy,
                 Plan& plan);

// Why a candidate fails the test.
std::string longer_there(const Stay& stay, const std::string& set);
// Why an entry is no candidate where PM decides.
std::string low_PM(const Stay& stay);

}  // namespace bsp::decide
