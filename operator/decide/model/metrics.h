// What is known of each rank at a call, brought up to date after every superstep of the window
// (Righi et al. 2010, the Computation and Communication metrics).
//
//   aging       X'_k = X_k;   X'_t = ½·X'_{t−1} + ½·X_t          k = first superstep of the window
//               PI  of I_t(i)   instructions       CTP of CT_t(i)    s, computation time
//               PB  of B_t(i,j) bytes              BTP of BT_t(i,j)  s, receive time
//   P_comp(i)   I_t·(1−δ) ≤ PI_t ≤ I_t·(1+δ)  →  + 1/α, at most 1;   else  − 1/α, at least 0
//   P_comm(i,j) the same with B, PB and β
//
// P starts at 1 and persists over calls; α is that of the window. Received bytes belong to the Set
// that the sender was in during the measured superstep.
//
// Grids name only the Sets that a rank has heard from in the window, or whose P_comm is not 1: of the others PB, BTP
// and B are 0 and P_comm stays 1.
#pragma once

#include <vector>

#include "operator/decide/fast/peaks.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/sparse_grid.h"

namespace bsp::decide {

struct Metrics {
  std::vector<double> PI{};      // [i] instructions
  std::vector<double> CTP{};     // [i] s
  SparseGrid PB{};               // [i, j] bytes
  SparseGrid BTP{};              // [i, j] s; empty with the superstep that a call follows: then there is Comm
  std::vector<double> P_comp{};  // [i] 0..1, how predictable the computation is
  SparseGrid P_comm{};           // [i, j] 0..1, how predictable the communication is

  std::vector<double> I_window{};  // [i] instructions, sum over the window so far
  SparseGrid B_window{};           // [i, j] bytes, sum over the window so far
  struct Last {
    Superstep superstep{};
    std::vector<double> instructions{};  // [i]
    SparseGrid recv_bytes{};             // [i, j]
  } last{};                              // the superstep added last
  std::uint64_t supersteps = 0;          // added so far in this window
  // [k][i] instructions of the last kReplayed supersteps (replay.h), the latest last; none of many ranks.
  std::vector<std::vector<double>> I_recent{};
  static constexpr std::size_t kReplayed = 16, kMostReplayed = 10'000;  // supersteps; ranks

  // Of the superstep that a call follows, else empty.
  SparseGrid Comm{};  // [i, j] s, P_comm·BTP: PM's Comm(i,j)
  // Besides, if rows are long:
  std::vector<Peaks> Comm_peaks{};  // [i] of Comm
  std::vector<Peaks> B_peaks{};     // [i] of last.recv_bytes
};

// At the start of a window. P_comp and P_comm come from the last one (1 where they say nothing).
Metrics open_metrics(std::vector<double> P_comp, const SparseGrid& P_comm, std::size_t ranks, std::size_t sets);

// After each superstep, until a call follows. O(ranks · Sets heard from), and the only part of a decision's work that
// needs all measured values: a call reads the peaks, made if it `follows`, and few of the sums and averages; or the
// rows, where they are short.
void update(Metrics& metrics, MeasuredSuperstep t, std::uint64_t alpha, const Params& params,
            bool call_follows = false);

// Instructions of the window so far are `ratio` times what they were. By rank.
void rescale(Metrics& metrics, std::span<const double> ratio);

}  // namespace bsp::decide
