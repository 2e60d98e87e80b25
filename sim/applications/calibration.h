// The calibration of the simulations: every value that the sources don't print, once for all their tables.
//
// Nothing here is specific to one table, cell or heuristic. Each value has its origin beside it:
//   printed   in the sources' texts
//   fitted    to the printed scenarios i and ii (and iii where it says so), as described
//   assumed   the sources don't give it, and the tables hardly depend on it
// docs/reproduction.md has the results, and lists which of these assumptions are open.
#pragma once

#include <array>
#include <compare>

#include "operator/decide/model/model.h"
#include "sim/platform.h"

namespace bsp::sim::calibration {

// --- The five Sets of the MigBSP chapter and of AutoMig ------------------------------------------------------------
// Instructions/s. Fitted: scenario i of Lattice Boltzmann with 10, 25 and 50 processes gives L, C and F (the slowest
// process's Set determines each; C and F together with kByteBetween), and the times after migrations give A; I never
// matters. The printed clock rates (1.2, 1.0, 1.0, 1.6, 2.0 GHz) don't fit the published times.
inline constexpr double kSpeedL = 1.5e9, kSpeedC = 1.202e9, kSpeedF = 1.002e9, kSpeedI = 1.6e9, kSpeedA = 2.2e9;

// s per received byte. Fitted: inside L from Lattice Boltzmann with 10 processes. Between Sets, scenario i of 25 and 50
// processes only gives the sum of C's or F's computation and a border; from 134 to 147 ns all published times fit
// equally well, and the statements about moves decide (kMig). Assumed: all Sets are like L inside, and all pairs of
// Sets are alike.
inline constexpr double kByteInside = 53.8e-9, kByteBetween = 140e-9;

// Seconds of barrier for each process outside the Set of process 1, where the chapter has its central barrier: a base
// value for one behind that Set's router, and more for each line between routers on the way. Fitted: scenario i of
// Lattice Boltzmann 25 and 50 and of LU, whose 2n+1 short supersteps are mostly barrier.
inline constexpr double kBarrierPerOutsider = 50e-6, kBarrierPerTrunk = 30e-6;

// Mig(i,j), s. From the statements about moves, together with T = kByteBetween:
//   Lattice Boltzmann 10 does not migrate: 1.5 MB·T + Mig > 0.212 s        Lattice Boltzmann 50 does: 0.7 MB·T + Mig <
//   0.109 s fractal 20 with 50 processes does:     20 KB·T + Mig < 0.010 s         with 200 it does not:      5 KB·T +
//   Mig > 0.005 s
// which leaves Mig from 0.0043 to 0.0071 s, and T from 137 to 147 ns.
inline constexpr double kMig = 0.0055;

// Seconds that a call with moves takes besides the largest Mem. Fitted: iii − ii of Lattice Boltzmann, 25 processes and
// few supersteps, is 0.25 to 0.34 for each single move; Mem explains 0.13. The decision doesn't know it.
inline constexpr double kMoveSeconds = 0.15;

// Seconds of a rescheduling call by number of processes. Fitted: (ii − i) / calls of Lattice Boltzmann with 10, 25 and
// 50 processes; extrapolated to 100 and 200 with the ratios of LU and the fractal application to 50 processes.
inline constexpr std::array<CallCost::Point, 5> kCall{
    {{10, 0.333}, {25, 0.656}, {50, 0.787}, {100, 0.81}, {200, 1.06}}};
// The fraction of that for each application; not part of the model. Fitted in the same way.
inline constexpr double kCallOfLatticeBoltzmann = 1, kCallOfSmithWaterman = 0.74, kCallOfLu = 0.17,
                        kCallOfFractal = 0.58, kCallOnGrid5000 = 0.26;

// Barriers per superstep of the fractal application; the others have one. Fitted: scenario i of domain 40 with 25 and
// 50 processes, where the barrier is 3 and 30 % of the time.
inline constexpr double kBarriersOfFractal = 2;

// The course of a superstep: computation and communication strictly separate (BSP's phases; if messages started early,
// Lattice Boltzmann 25 would get faster with its first moves, and it doesn't), each rank receives its messages one
// after the other, and links aren't shared (with shared lines, LU 50 comes out 25 to 30 % too slow).
inline constexpr Delivery kDelivery = Delivery::kInTurn;
inline constexpr Departure kDeparture = Departure::kAllReady;
inline constexpr bool kSharedLinks = false;

// --- Decisions -----------------------------------------------------------------------------------------------------
// The viability test over one superstep, as its equations are printed. Over the window instead (operator/decide's
// default), Lattice Boltzmann 10 would migrate at every call, Smith-Waterman 10 with α = 2 at superstep 6, and LU too
// much; only the last moves of Lattice Boltzmann 25 and 50 need the window.
inline constexpr decide::Horizon kHorizon = decide::Horizon::kSuperstep;
inline constexpr double kOmega = 3, kD0 = 0.5, kX = 0.8;  // printed
inline constexpr double kDelta = 0.5;  // printed for Smith-Waterman's scenario iii; no other load changes as fast
inline constexpr double kBeta = 0.5;   // assumed

// --- Grid'5000, MigCube and MigHull ----------------------------------------------------------------------------------
// Machines by site, with the cores that Grid'5000 documents. A core is a processor, so two processes on one machine
// don't slow each other down while it has a core for each; otherwise the times of different initial mappings would
// differ, and the printed ones don't. Instructions/s of a core: Capricorne's fitted to scenario i (which it determines
// in every mapping), Suno's (a Xeon E5520 against an Opteron 246) to the supersteps after migrations, 0.42 to 0.45 s of
// printed iii in the long runs. Chicon's relative to Capricorne's from SimGrid's own description of Grid'5000 (g5k.xml:
// 8.9618 and 4.7233 Gflop/s): with the ratio of the clock rates, 1.3, a first call that only empties Capricorne would
// leave supersteps of 0.6 s, where the printed runs of 20 supersteps with a call after the 16th leave 0.3. That file's
// Suno, 4.98 of a Capricorne, doesn't fit (scenario iii would be 30 % too fast).
inline constexpr double kSpeedCapricorne = 0.2099e9, kSpeedChicon = 8.9618 / 4.7233 * kSpeedCapricorne,
                        kSunoPerCapricorne = 1.9;
inline constexpr double kClockCapricorne = 2.0, kClockChicon = 2.6,
                        kClockSuno = 2.26;  // GHz, printed; they set the order of the mappings

// --- What was chosen by what moves ------------------------------------------------------------------------------------
// The values above that scenario iii and the statements about moves determine. reproduce/held_out.h chooses them from
// candidates by one half of the cells, and predicts the other half.
struct Choice {
  double byte_between = kByteBetween;               // s
  double mig = kMig;                                // s
  decide::Horizon horizon = kHorizon;               // of the viability test
  double suno_per_capricorne = kSunoPerCapricorne;  // speed of a core ÷ speed of a core

  auto operator<=>(const Choice&) const = default;
  bool operator==(const Choice&) const = default;
};

// The speed of Corisco or Frontal that keeps scenario i of Lattice Boltzmann as it is with another cost of a byte:
// computation plus one border of 100 KB is what scenario i gives; 4e8 instructions with 25 processes (Corisco), 2e8 with
// 50 (Frontal).
constexpr double refitted(double speed, double instructions, double byte_between) {
  return speed / (1 + speed * 100e3 * (kByteBetween - byte_between) / instructions);
}

}  // namespace bsp::sim::calibration
