// Recorded calls of any shape, and whole runs of them, for tests of what holds for all.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "operator/decide/make_plan.h"
#include "operator/record/call.h"
#include "tests/unit/decide/random_job.h"

namespace bsp::record {

// One of the random jobs of the decision's tests, with all that a real call has besides: names, origins, a history.
class RandomRun {
 public:
  RandomRun(std::mt19937_64& random, const decide::Shape& shape, decide::Heuristic heuristic)
      : random_(random), job_(random, shape, heuristic) {
    decide::Params& p = job_.params;
    p.alpha0 = 1 + below(5);
    p.d0 = between(0.05, 0.6);
    p.omega = 1 + below(4);
    p.delta = between(0, 0.5);
    p.beta = between(0, 0.5);
    p.x = between(0.1, 1);
    p.horizon = below(2) ? decide::Horizon::kWindow : decide::Horizon::kSuperstep;
    p.min_gain = below(4) ? 0 : between(0, 0.3);
    p.cooldown = below(3) ? 0 : below(10);
    p.reuse_vacated_slots = below(4) == 0;
    p.migrates = below(4) != 0;
    decide::Platform& platform = job_.snapshot.platform;
    for (std::size_t j = 0; j < platform.sets.size(); ++j)
      platform.sets[j].name = below(5) ? "set-" + std::to_string(j) : "a \"Set\"\n\t\\ ü";
    for (std::size_t q = 0; q < platform.processors.size(); ++q) {
      platform.processors[q].name = "node-" + std::to_string(q);
      platform.processors[q].taken = below(6) ? 0 : 1;
      platform.processors[q].cpu_origin = origin();
      platform.processors[q].cpu_error = below(2) ? 0 : between(0, 0.5);
      platform.processors[q].may_return = below(4) == 0;
    }
    const std::size_t sets = platform.sets.size();
    if (below(2)) platform.T_origin = origins(sets, sets);
    if (below(3) == 0) {
      platform.Mig = decide::Grid<double>(shape.ranks, sets);
      for (std::size_t i = 0; i < shape.ranks; ++i)
        for (double& seconds : platform.Mig.row(i)) seconds = between(0, 0.3);
    }
    if (below(2)) platform.Mig_origin = origins(platform.Mig.rows(), sets);
    if (below(3) == 0) {
      platform.capacity = decide::Grid<double>(sets, sets);
      for (std::size_t a = 0; a < sets; ++a)
        for (double& capacity : platform.capacity.row(a)) capacity = below(2) ? 0 : between(1e6, 1e9);
    }
    if (below(2))
      for (std::uint32_t i = 0; i < shape.ranks; ++i)
        for (std::uint32_t k = i + 1; k < shape.ranks && k <= i + 3; ++k)
          if (below(2))
            job_.snapshot.ranks[i].partners.push_back(
                {.rank = {k}, .bytes = between(0, 1e6), .messages = below(2) ? 0 : between(0, 1e4)});
    if (below(3) == 0) {
      for (decide::Rank& rank : job_.snapshot.ranks) rank.pod = below(4);
      for (decide::Processor& q : platform.processors) q.pod = below(4) ? 0 : 1 + below(4);
      for (std::size_t j = 0; j < sets; ++j) {
        platform.shared.push_back({.byte = between(0, 1e-9), .message = between(0, 1e-6)});
        platform.apart.push_back({.byte = between(0, 1e-8), .message = below(2) ? 0 : between(0, 1e-4)});
      }
    }
    if (below(2)) {  // a job that has been going on for a while
      state_.cadence = {.k = Superstep{1 + below(1000)},
                        .alpha = 1 + below(6),
                        .alpha_next = below(9),
                        .d = between(0.01, 0.9),
                        .gamma = below(9)};
      if (below(2))
        state_.cadence.wave = {.before = between(0, 1),
                               .error = between(0, 0.01),
                               .model = between(0, 1),
                               .since = Superstep{below(9)},
                               .until = Superstep{below(9)}};
      if (below(2)) state_.cadence.taken_back = 1 + below(3), state_.cadence.cooling = below(2) != 0;
      for (std::uint32_t i = 0; i < shape.ranks; ++i) state_.P_comp.push_back(below(3) ? 1 : between(0, 1));
      decide::Grid<double> P_comm(shape.ranks, sets, 1.0);
      for (std::size_t i = 0; i < shape.ranks; ++i)
        for (double& p_comm : P_comm.row(i)) p_comm = below(3) ? 1 : between(0, 1);
      state_.P_comm = {P_comm, 1.0};
    }
  }

  // The next call; `moves`: the run carries its plan out.
  Call next(bool moves = true) {
    Call call{.name_space = "science",
              .job = "lattice",
              .uid = "0b2f7c1e",
              .attempt = 1,
              .time = "2026-11-21T19:40:00.000001Z",
              .params = job_.params,
              .snapshot = job_.snapshot,
              .state = state_};
    decide::Window window(state_, job_.params, job_.snapshot.ranks.size(), job_.snapshot.platform.sets.size());
    for (std::uint64_t t = window.cadence().k.value; !window.call_due(); ++t) {
      if (below(8) == 0) continue;  // it was not reported
      decide::MeasuredSuperstep now = job_.superstep;
      now.superstep = Superstep{t};
      now.communication_seconds = below(4) ? 0.01 : between(0, 0.1);
      for (std::size_t i = 0; i < now.instructions.size(); ++i) {
        if (below(3) == 0) now.instructions[i] = std::floor(now.instructions[i] * between(0.5, 1.5));
        if (below(3) == 0) now.compute_seconds[i] *= between(0.5, 1.5);
      }
      if (below(3) == 0) {
        decide::Grid<double> bytes = now.recv_bytes.dense(), seconds = now.recv_seconds.dense();
        for (std::size_t i = 0; i < bytes.rows(); ++i)
          for (std::size_t j = 0; j < bytes.cols(); ++j)
            if (below(2)) bytes[i, j] = seconds[i, j] = 0;
        now.recv_bytes = bytes, now.recv_seconds = seconds;
      }
      call.supersteps.push_back(now);
      window.add(std::move(now));
    }
    call.plan = *decide::make_plan(call.snapshot, window, call.params);
    state_ = std::move(window).close(call.plan.next);
    if (moves)
      for (const decide::Move& move : call.plan.moves) {
        job_.snapshot.ranks[move.rank.value].processor = move.to;
        job_.snapshot.ranks[move.rank.value].last_move = call.plan.superstep;
      }
    return call;
  }

 private:
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  std::uint32_t below(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }
  decide::Origin origin() { return below(2) ? decide::Origin::kMeasured : decide::Origin::kAssumed; }
  decide::Grid<decide::Origin> origins(std::size_t rows, std::size_t cols) {
    decide::Grid<decide::Origin> grid(rows, cols);
    for (std::size_t i = 0; i < rows; ++i)
      for (decide::Origin& one : grid.row(i)) one = origin();
    return grid;
  }

  std::mt19937_64& random_;
  decide::OneSuperstep job_;
  decide::State state_{};
};

}  // namespace bsp::record
