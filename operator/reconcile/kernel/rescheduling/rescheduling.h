// The scheduler of one job as it lives in the operator: reports in, decisions and gains out.
//
// It owns the window of operator/decide, what its supersteps are measured by (observe/yardstick.h), and what waves have gained
// (gains.h). What it can't measure again is written to status.rescheduler and status.calibration, so that a fresh operator continues with
// the same alpha, D, P and measurements; supersteps that were not reported meanwhile are skipped.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/decide/model/plan.h"
#include "operator/decide/model/window.h"
#include "operator/observe/collector.h"
#include "operator/observe/yardstick.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/rescheduling/gains.h"
#include "operator/reconcile/kernel/rescheduling/scheduler_state.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

class Rescheduler {
 public:
  // Continues from the status. `records`: attach a record to each decision, for which the window's supersteps are kept.
  explicit Rescheduler(const crds::BspJob& job, std::size_t sets, bool records = false);

  // False for a report from an older epoch, requested before this scheduler began: the ranks of an earlier attempt were
  // elsewhere in the program, so what they had completed says nothing about this one.
  bool add(const wire::RankReport& report);
  // Decides by this spec from the next call on. True: it differs from that of the last one.
  bool follow(const crds::BspJobSpec& spec);
  // Feeds what is complete to the window. A decision comes at most once per call; it must be stored
  // (store()) before the next one is asked for.
  std::optional<Decided> advance(const Observed& o);
  // Writes alpha, D, times, imbalance, calibration and the state to be continued.
  void store(crds::BspJobStatus& status, const Observed& o) const;
  // The gains of the last wave (Gains::realised()).
  std::vector<RealisedGain> realised(const crds::BspJobStatus& status, bool ending) {
    return gains_.realised(status, collector_.history(), ending);
  }

  [[nodiscard]] const observe::Collector& collector() const { return collector_; }
  std::uint64_t begin_round() { return collector_.begin_round(); }  // see there
  [[nodiscard]] double superstep_seconds() const;

 private:
  // What it schedules: one attempt of a job.
  struct Attempt {
    std::size_t ranks, sets;
    std::uint32_t number;
    std::uint64_t first_epoch;  // epoch numbers grow over attempts; the ring holds the one that its rank is in
  };

  // What it decides by.
  struct Terms {
    explicit Terms(const crds::BspJobSpec& spec);
    bool operator==(const Terms&) const = default;
    [[nodiscard]] bool has_aim_of(const Terms& other) const {
      return params.objective == other.params.objective && params.max_slowdown == other.params.max_slowdown &&
             deadline == other.deadline;
    }

    decide::Params params;
    std::string deadline;  // spec.objective's; a call has the time left of it
  };

  Rescheduler(const crds::BspJob& job, std::size_t sets, bool records, SchedulerState stored);

  void note_wave(const Observed& o);
  void note_resizes(const Observed& o);
  void note_prices(const Observed& o);
  void learn_of_moves(const migrate::Wave& wave, const Observed& o);
  void learn_of_delay(const migrate::Wave& wave, const Observed& o);
  std::optional<Decided> decide_now(const Observed& o);
  // Resizes instead of the plan's moves, if there are any.
  void prefer_resizes(const Observed& o, const decide::Plan& plan, const decide::Snapshot& snapshot,
                      Decided& out) const;
  void open_window();  // from state_
  // Starts a window with this superstep: what was measured before says nothing about those to come. It doesn't judge the
  // last wave unless that was decided and made.
  void measure_from(std::uint64_t superstep, bool judges_wave);
  // The call that is to come may be far away, and a plan for the present prices or objective another one: a new, short window begins.
  void decide_soon();
  // Between two windows.
  void settle(const Observed& o);
  // Before a call.
  void settle_ranks();
  [[nodiscard]] std::string record_of(const Observed& o, const decide::Params& params, decide::Snapshot snapshot,
                                      decide::Plan plan);

  Attempt of_;
  Terms terms_;
  observe::Collector collector_;
  crds::SuperstepEdge edge_;
  observe::Yardstick yardstick_;
  Gains gains_;
  std::optional<decide::Window> window_;
  decide::State state_;  // of the window's start
  bool records_;
  std::vector<decide::MeasuredSuperstep> supersteps_;  // of the window, if records_
  // Ended waves up to this one, so many resizes, and these prices, by node, have been taken into account.
  struct Seen {
    std::uint32_t wave = 0, resizes = 0;
    std::map<std::string, double> prices{};
  } seen_;
  Moves moves_;
};

// What the ranks report as instructions, as far as their sidecars have said.
observe::WorkUnit unit_of_work(const Observed& o);

// What the sidecars of all pods, also of those that wait for a rank, have said of their CPUs. Refers to `o`.
std::vector<observe::PodBenchmark> pod_benchmarks(const Observed& o);

// The Set Managers: of each Set, by its number in the epoch, the sidecar of the lowest rank that answers. A Set without an
// answering sidecar has none.
std::map<std::uint32_t, Seat> set_managers(const Observed& o);

}  // namespace bsp::reconcile
