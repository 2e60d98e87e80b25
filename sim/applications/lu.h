// LU decomposition of an n×n matrix, distributed cyclically over R×C ranks: irregular and shrinking (Righi et al. 2010,
// table 9).
//
//   Cell (i,j) belongs to rank (i mod R)·C + (j mod C), i and j from 0.
//   R×C: 5×5, 10×5, 10×10, 20×10 for 25 … 200 ranks
//   superstep 1       first:  a_00 goes down its column of ranks, to R−1 of them
//   superstep 2k+2    second: a_ik ← a_ik / a_kk for i > k; then a_ik along its row to C−1 ranks, a_kj (j > k) along its
//                     column to R−1 ranks
//   superstep 2k+3    third:  a_ij ← a_ij − a_ik·a_kj for i, j > k; then a_{k+1,k+1} down its column
//   for k = 0 … n−1: 2n+1 supersteps.
//   I = u per updated cell, u = 1000 instructions (fitted);  messages: b per cell, b = 4 bytes
//   M = m · cells of the rank, no fixed part, m = 1.5 bytes (fitted)                          bytes
//   The source prints no M. Five processes of 25 move at superstep 11 of order 1000, to save 15 ms each, so m is below
//   1.7. Below 1.5, processes would also leave the Set that holds most of them, one by one, which speeds nothing up.
//   That is less than the matrix itself: we don't know what the source counted as a process's image.
//
// Only ranks that still have cells to update get messages. In superstep 1, and if k = n−1, no rank computes.
#pragma once

#include "sim/workload.h"

namespace bsp::sim {

struct Lu {
  std::uint32_t ranks = 0;
  std::uint64_t order = 0;            // n
  std::uint32_t rows = 0;             // R, a divisor of ranks; 0 = the least divisor ≥ √ranks
  double update_instructions = 1000;  // u
  double cell_bytes = 4;              // b
  double memory_bytes = 1.5;          // m
};

// R for that many ranks: 25 → 5, 50 → 10, 100 → 10, 200 → 20.
std::uint32_t lu_rows(std::uint32_t ranks);

std::unique_ptr<Workload> make(const Lu& parameters);
Application lu();

}  // namespace bsp::sim
