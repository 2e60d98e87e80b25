// What a decision knows of a job after one superstep.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "operator/decide/auto/partners.h"
#include "tests/bench/closed_loop.h"

namespace bsp::decide {

// A job, its partners and what a superstep without noise measures.
struct MeasuredJob {
  LoopJob job;
  Columns columns;
  Metrics metrics;
  Params params;

  MeasuredJob(LoopJob of, bool with_partners) : job(std::move(of)) {
    const std::size_t ranks = job.work.size(), sets = job.start.platform.sets.size();
    if (with_partners)
      for (std::uint32_t i = 0; i < ranks; ++i)
        job.start.ranks[i].partners = partners_of(job, i, [](double bytes) { return bytes; });
    columns = *columns_of(job.start);
    Grid<double> bytes(ranks, sets);
    for (std::uint32_t i = 0; i < ranks; ++i)
      for (const LoopJob::Partner& k : job.hears[i]) bytes[i, columns.own[k.from].value] += k.bytes;
    metrics.last.instructions = job.work;
    metrics.last.recv_bytes = bytes;
  }
  [[nodiscard]] Case of() const { return {job.start, columns, metrics, params, 1, 1}; }
  [[nodiscard]] std::vector<double> seconds(const std::vector<ProcessorId>& on) const {
    const Case c = of();
    std::vector<double> by_rank;
    Heard(c).seconds(on, by_rank);
    return by_rank;
  }
};

}  // namespace bsp::decide
