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
// Instructions/s. Fitted: scenario i of Lattice Boltzmann with 10 processes gives L; with 25, 50 and 100 it gives C, F and
// the cost of a border (the slowest process's Set determines each); the times after migrations give A; I never matters.
// The printed clock rates (1.2, 1.0, 1.0, 1.6, 2.0 GHz) don't fit the published times.
inline constexpr double kSpeedL = 1.5e9, kSpeedC = 1.1931e9, kSpeedF = 0.9901e9, kSpeedI = 1.6e9, kSpeedA = 2.2e9;

// s per received byte. A byte from another Set first crosses a line of 100 Mb/s (printed: 80 ns), then the receiver's
// link. Corisco's and Frontal's lines carry all their messages at once, so each further border through one makes a
// superstep 8 ms longer (printed iii of Lattice Boltzmann 50 and 100). Fitted: the link, inside L from Lattice Boltzmann
// with 10 processes, elsewhere from the borders of 25, 50 and 100. Assumed: the pairs of Sets are alike.
inline constexpr double kByteInsideL = 53.8e-9, kByteInside = 35.6e-9, kByteOfLine = 80e-9;

// Seconds of barrier for each process outside the Set of process 1, where the chapter has its central barrier: a base
// value for one behind that Set's router, and more for each line between routers on the way. Fitted: scenario i of
// Lattice Boltzmann and of LU, whose 2n+1 short supersteps are mostly barrier.
inline constexpr double kBarrierPerOutsider = 50e-6, kBarrierPerTrunk = 30e-6;

// What a move carries: the process's data, once out and once in, and not the program, which every node has. With the
// printed program of 500 KB no process of 100 could move over one superstep, and the paper's do. Mig(i,j), s, follows
// with T = 115.6 ns from the statements about moves (docs/reproduction.md).
inline constexpr double kImageCopies = 2, kMig = 0.005;
// A call that moves costs a superstep: printed iii − ii of one move is 0.35, 0.21 and 0.11 s with 25, 50 and 100
// processes of Lattice Boltzmann, and a superstep 0.35, 0.22 and 0.12. The decision doesn't know it.
inline constexpr bool kMoveRepeats = true;

// Seconds of a rescheduling call by number of processes. Fitted: (ii − i) / calls of Lattice Boltzmann with 10, 25, 50
// and 100 processes; extrapolated to 200 with the slope from 50 to 100.
inline constexpr std::array<CallCost::Point, 5> kCall{
    {{10, 0.333}, {25, 0.656}, {50, 0.787}, {100, 0.885}, {200, 1.081}}};
// The fraction of that for each application; not part of the model. Fitted in the same way. Grid'5000's: Ascending's (ii − i) / calls, to
// compare other heuristics there.
inline constexpr double kCallOfLatticeBoltzmann = 1, kCallOfSmithWaterman = 0.74, kCallOfLu = 0.17,
                        kCallOfFractal = 0.58, kCallOnGrid5000 = 0.29;

// Barriers per superstep of the fractal application; the others have one. Fitted: scenario i of domain 40 with 25 and
// 50 processes, where the barrier is 3 and 30 % of the time.
inline constexpr double kBarriersOfFractal = 2;

// The course of a superstep: computation and communication strictly separate (BSP's phases; if messages started early,
// Lattice Boltzmann 25 would get faster with its first moves, and it doesn't), each rank receives its messages one
// after the other, and what comes from another Set is stored before the last link.
inline constexpr Delivery kDelivery = Delivery::kInTurn;
inline constexpr Departure kDeparture = Departure::kAllReady;
inline constexpr Forwarding kForwarding = Forwarding::kStored;

// --- Decisions -----------------------------------------------------------------------------------------------------
// The viability test over one superstep, as its equations are printed. Over the window instead (operator/decide's
// default), Lattice Boltzmann 10 would migrate at every call, which the source says it does not.
inline constexpr decide::Horizon kHorizon = decide::Horizon::kSuperstep;
inline constexpr double kOmega = 3, kD0 = 0.5, kX = 0.8;  // printed
inline constexpr double kDelta = 0.5;  // printed for Smith-Waterman's scenario iii; no other load changes as fast
inline constexpr double kBeta = 0.5;   // assumed
// The order in which Frontal's processes leave it, printed for 50 of them (Lattice Boltzmann; they work equally long).
inline constexpr std::array<std::uint32_t, 6> kPrintedOrder{38, 40, 42, 39, 41, 37};

// --- LU --------------------------------------------------------------------------------------------------------------
// Instructions per updated cell, fitted to scenario i; bytes per cell in an image, from "five processes of 25 leave
// Corisco at superstep 11".
inline constexpr double kLuUpdate = 960, kLuMemory = 0.9;

// --- What was chosen by what moves ------------------------------------------------------------------------------------
// The values above that scenario iii and the statements about moves determine. reproduce/held_out.h chooses them from
// candidates by one half of the cells, and predicts the other half.
struct Choice {
  double image_copies = kImageCopies;
  double mig = kMig;                   // s
  decide::Horizon horizon = kHorizon;  // of the viability test

  auto operator<=>(const Choice&) const = default;
  bool operator==(const Choice&) const = default;
};

}  // namespace bsp::sim::calibration
