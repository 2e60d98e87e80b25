// Every figure that the sources do not print, once, for all their tables: the calibration of the simulations.
//
// Nothing here belongs to one table, cell or heuristic. Where a figure comes from stands beside it:
//   printed   in the sources' texts
//   fitted    from the scenarios i and ii that the sources print (and the one that says iii), as described
//   assumed   the sources say nothing, and the tables hardly depend on it
// docs/reproduction.md shows what comes out of it, and which of these assumptions are open.
#pragma once

#include <array>

#include "operator/decide/model.h"
#include "sim/platform.h"

namespace bsp::sim::calibration {

// --- The five Sets of the MigBSP chapter and of AutoMig ------------------------------------------------------------
// Instructions/s. Fitted: scenario i of Lattice Boltzmann with 10, 25 and 50 processes gives L, C and F (the slowest
// process's Set rules each; C and F together with kByteBetween), the times after migrations A; I never rules. The
// printed clock rates (1.2, 1.0, 1.0, 1.6, 2.0 GHz) do not fit the published times.
inline constexpr double kSpeedL = 1.5e9, kSpeedC = 1.202e9, kSpeedF = 1.002e9, kSpeedI = 1.6e9, kSpeedA = 2.2e9;

// s per received byte. Fitted: inside L from Lattice Boltzmann with 10 processes. Between Sets, scenario i of 25 and 50
// processes only says what C's and F's computation and a border take together; from 134 to 147 ns all published times
// are met alike, and the statements about moves decide (kMig). Assumed: inside every Set as inside L, between any two
// the same.
inline constexpr double kByteInside = 53.8e-9, kByteBetween = 140e-9;

// s of barrier for each process outside the Set of process 1, where the chapter's central barrier sits: one that is
// reached through that Set's router, and more for each line between routers on the way. Fitted: scenario i of Lattice
// Boltzmann 25 and 50 and of LU, whose 2n+1 short supersteps are mostly barrier.
inline constexpr double kBarrierPerOutsider = 50e-6, kBarrierPerTrunk = 30e-6;

// Mig(i,j), s. From the statements about moves, together with T = kByteBetween:
//   Lattice Boltzmann 10 does not migrate: 1.5 MB·T + Mig > 0.212 s        Lattice Boltzmann 50 does: 0.7 MB·T + Mig <
//   0.109 s fractal 20 with 50 processes does:     20 KB·T + Mig < 0.010 s         with 200 it does not:      5 KB·T +
//   Mig > 0.005 s
// which leaves Mig from 0.0043 to 0.0071 s, and T from 137 to 147 ns.
inline constexpr double kMig = 0.0055;

// s that a call which moves processes takes besides the largest Mem. Fitted: iii − ii of Lattice Boltzmann, 25
// processes and few supersteps, is 0.25 to 0.34 for each single move; Mem explains 0.13. The decision does not know of
// it.
inline constexpr double kMoveSeconds = 0.15;

// s of a rescheduling call, by processes. Fitted: (ii − i) / calls of Lattice Boltzmann with 10, 25 and 50 processes;
// 100 and 200 extrapolated with the ratios that LU and the fractal application show between 50 processes and those.
inline constexpr std::array<CallCost::Point, 5> kCall{
    {{10, 0.333}, {25, 0.656}, {50, 0.787}, {100, 0.81}, {200, 1.06}}};
// What the others pay of that: an application's figure, not the model's. Fitted in the same way.
inline constexpr double kCallOfLatticeBoltzmann = 1, kCallOfSmithWaterman = 0.74, kCallOfLu = 0.17,
                        kCallOfFractal = 0.58, kCallOnGrid5000 = 0.26;

// Barriers in a superstep of the fractal application. Fitted: scenario i of domain 40 with 25 and 50 processes, where
// it is 3 and 30 % of the time. The others have one.
inline constexpr double kBarriersOfFractal = 2;

// How a superstep passes: computation and communication strictly apart (BSP's phases; with messages that start early,
// Lattice Boltzmann 25 would get faster with its first moves, and it does not), a rank's messages one after the other,
// and nobody slowed by the messages of others (with shared lines, LU 50 comes out 25 to 30 % too slow).
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
// Machines by site with the cores that Grid'5000 documents; a core is a processor, so that two processes on one machine
// do not slow each other as long as it has cores. Only so are the printed times of different initial mappings alike, as
// they are. Instructions/s of a core: Capricorne's fitted to scenario i (which it rules in every mapping), Suno's (a
// Xeon E5520 against an Opteron 246) to the supersteps after migrations, 0.42 to 0.45 s of printed iii in the long
// runs. Chicon's against Capricorne's as SimGrid's own description of Grid'5000 has their machines (g5k.xml: 8.9618 and
// 4.7233 Gflop/s): by clock rate, 1.3, a first call that only empties Capricorne would leave supersteps of 0.6 s, where
// the printed runs of 20 supersteps with a call after the 16th leave 0.3. That file's Suno, 4.98 of a Capricorne, does
// not fit (scenario iii would be 30 % too fast).
inline constexpr double kSpeedCapricorne = 0.2099e9, kSpeedChicon = 8.9618 / 4.7233 * kSpeedCapricorne,
                        kSpeedSuno = 1.9 * kSpeedCapricorne;
inline constexpr double kClockCapricorne = 2.0, kClockChicon = 2.6,
                        kClockSuno = 2.26;  // GHz, printed; they order the mappings

}  // namespace bsp::sim::calibration
