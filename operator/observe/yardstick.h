// What a job's supersteps are measured by: what the instructions of a rank are worth, how fast Sets and nodes are, and what a move costs.
// A superstep passes through it in one order, in which each part takes what the ones before it have made:
//
//   I_t(i) as reported
//     · f(Set of i)    one unit for all ranks                                          work.h
//     · a suspect's    where CPUs count nothing: what a slower node adds is no work    slowdowns.h
//     · exp(c(i))      what a rank's instructions are worth beside those of others     rank_factors.h
//   = work(i), on which decisions rest
//
// Speeds are learned from the same work (calibration.h), but that ranks which share a node without CPU for all of them count as if each
// were alone, and that of a rank which its own CPU limit holds back only the CPU time counts.
//
// f changes in settle() only, and c in settle_ranks(), so that the supersteps of one window have one unit.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/decide/model/model.h"
#include "operator/decide/model/plan.h"
#include "operator/observe/benchmarks.h"
#include "operator/observe/calibration.h"
#include "operator/observe/message_prices.h"
#include "operator/observe/rank_factors.h"
#include "operator/observe/slowdowns.h"
#include "operator/observe/snapshot.h"
#include "operator/observe/work.h"

namespace bsp::observe {

// Where the ranks are. All by rank.
struct Places {
  std::vector<std::string> sets, nodes;
  std::vector<double> alone;            // slowed_by_each_other()
  std::vector<std::uint8_t> held_back;  // not 0: by its own CPU limit
  std::vector<std::string> pods{};      // empty: every rank has its own
};

// One move of a wave that succeeded.
struct Moved {
  std::uint32_t from = 0, to = 0;  // Sets, by their number in the epoch
  std::uint64_t bytes = 0;
  std::optional<double> transfer_ms{};  // not known: an older operator's wave
};

class Yardstick {
 public:
  // `work` and `ranks`: as they were stored; null: nothing.
  Yardstick(const std::vector<crds::CalibrationEntry>& values, const nlohmann::json& work, const nlohmann::json& ranks,
            std::size_t number_of_ranks);

  void set_unit(WorkUnit unit) { work_.set_unit(unit); }
  [[nodiscard]] WorkUnit unit() const { return work_.unit(); }

  // By rank, with all that the superstep shows learned.
  std::vector<double> work_of(SuperstepTimes reported, const Places& places);
  // What of it crossed from Set to Set and, where ranks share pods, what messages took inside and across. `sets`, here and below: the
  // epoch's, in whose order reports count.
  void add_traffic(const decide::MeasuredSuperstep& superstep, const std::vector<std::string>& sets,
                   const Places& places, const Collector& collector);
  // What a wave has shown of links and fixed costs. `pause`: the wave's.
  void add_moves(std::span<const Moved> moves, const std::vector<std::string>& sets, const crds::PauseParts& pause);
  // See there.
  void add_late_move(const std::string& from, const std::string& to, std::uint64_t bytes, double seconds) {
    calibration_.add_late_move(from, to, bytes, seconds);
  }

  // Between two windows: takes up what was learned of Sets.
  void settle(const std::vector<std::string>& set_of_rank, const std::vector<PodBenchmark>& pods,
              const std::vector<NodeFacts>& nodes);
  // Before a call, so that the wave that showed it is judged by it: takes up what was learned of ranks. By rank, work now ÷ before, by
  // which the window has to be rescaled; empty: none has changed.
  std::vector<double> settle_ranks() { return factors_.settle(calibration_); }

  // What may be decided on these measurements.
  void limit(decide::Params& params) const;
  // `pods`: ranks share some.
  [[nodiscard]] decide::Platform platform(const std::vector<std::string>& sets, const std::vector<NodeFacts>& nodes,
                                          const std::vector<std::string>& set_of_rank, bool pods = false) const;
  [[nodiscard]] const MessagePrices& message_prices() const { return prices_; }

  // Each value with what it rests on, to go on from.
  [[nodiscard]] std::vector<crds::CalibrationEntry> to_status(const std::vector<NodeFacts>& nodes,
                                                              const std::vector<std::string>& set_of_rank) const;
  [[nodiscard]] nlohmann::json work_json() const { return work_.to_json(); }
  [[nodiscard]] nlohmann::json ranks_json() const { return factors_.to_json(); }

 private:
  // I_t(i) · f(Set of i), of suspects less what their nodes add.
  [[nodiscard]] std::vector<double> in_one_unit(std::vector<double> instructions, const Places& places);
  // Relative to a core of the Set that holds most ranks.
  [[nodiscard]] std::map<std::string, double> speeds_of_cores(const std::vector<std::string>& set_of_rank) const;

  Calibration calibration_;
  MessagePrices prices_;
  Benchmarks benchmarks_;
  Work work_;
  Slowdowns slowdowns_;
  RankFactors factors_;
};

}  // namespace bsp::observe
