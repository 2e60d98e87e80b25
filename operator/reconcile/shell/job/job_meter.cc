#include "operator/reconcile/shell/job/job_meter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/core/metric.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

namespace metered {
using Type = Metric::Type;
const std::vector<double> kPauseBounds{0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60};
Metric migrations(Type::kCounter, "bsp_migrations_total", "Migrations that have ended.", {"outcome", "reason"});
Metric pause_seconds(Type::kHistogram, "bsp_migration_pause_seconds", "Pause of a job for a wave of migrations.",
                     {"outcome"}, kPauseBounds);
Metric phase_seconds(Type::kHistogram, "bsp_migration_phase_seconds", "Parts of a pause; they overlap between ranks.",
                     {"phase"}, kPauseBounds);
Metric gain_seconds(Type::kGauge, "bsp_migrations_gain_seconds",
                    "Sum of the gains of all migrations: predicted, and realised where it has been measured.",
                    {"kind"});
Metric gain_error(Type::kGauge, "bsp_migrations_gain_error_seconds",
                  "Two standard errors of the sum of realised gains.");
Metric measured(Type::kCounter, "bsp_migrations_measured_total",
                "Migrations whose gain has been measured: gained, lost, or noise if it can't be told from that.",
                {"result"});
Metric taken_back(Type::kCounter, "bsp_waves_taken_back_total",
                  "Waves that are undone, as supersteps were longer after them.", {"job_namespace"});
Metric resizes(Type::kCounter, "bsp_resizes_total", "Ranks that were to get more CPU where they are.", {"outcome"});
Metric restarts(Type::kCounter, "bsp_job_restarts_total", "Attempts of jobs that failed.", {"reason"});
Metric finished(Type::kCounter, "bsp_jobs_finished_total", "Jobs that have ended.", {"phase", "reason"});
Metric lost_seconds(Type::kCounter, "bsp_imbalance_lost_seconds_total",
                    "Time for which the mean rank waited for the slowest one.", {"job_namespace"});
Metric load_balance(Type::kGauge, "bsp_job_load_balance", "Mean time of the ranks divided by that of the slowest one.",
                    {"job_namespace", "job_name"});
Metric pods_waiting(Type::kGauge, "bsp_job_pods_waiting", "Pods of the job that don't run yet.",
                    {"job_namespace", "job_name"});
Metric ranks_held(Type::kGauge, "bsp_job_ranks_held", "Ranks that hold something that can't be moved.",
                  {"job_namespace", "job_name"});
Metric conditions(Type::kGauge, "bsp_job_condition", "1 for each condition of the job that is true.",
                  {"job_namespace", "job_name", "type"});
Metric node_slowness(Type::kGauge, "bsp_job_node_slowness",
                     "Mean computation time of the ranks on a node divided by that of its Set.",
                     {"job_namespace", "job_name", "set", "node"});
}  // namespace metered

// A family per node of a large job would be most of the page.
constexpr std::size_t kMostNodes = 256;

void count_wave(const migrate::Wave& wave) {
  const std::string outcome(crds::to_string(wave.phase));
  metered::migrations.add({outcome, wave.reason}, static_cast<double>(wave.moves.size()));
  const crds::PauseParts& p = wave.pause;
  if (p.total_ms > 0) metered::pause_seconds.observe({outcome}, p.total_ms * 1e-3);
  for (const auto& [phase, ms] : {std::pair{"gate", p.gate_ms},
                                  {"close", p.close_ms},
                                  {"dump", p.dump_ms},
                                  {"transfer", p.transfer_ms},
                                  {"restore", p.restore_ms},
                                  {"commit", p.commit_ms},
                                  {"open", p.open_ms}})
    if (ms > 0) metered::phase_seconds.observe({phase}, ms * 1e-3);
}

void count_resizes(const crds::BspJobStatus& before, const crds::BspJobStatus& after) {
  for (const crds::RankResize& resize : after.resizes) {
    const auto same = [&](const crds::RankResize& r) { return r.rank == resize.rank && r.pod == resize.pod; };
    const auto was = std::ranges::find_if(before.resizes, same);
    if (was != before.resizes.end() && was->phase == crds::ResizePhase::kAsked && resize.phase != was->phase)
      metered::resizes.add({std::string(crds::to_string(resize.phase))});
  }
}

// Jobs err independently of each other.
void add_error(double before, double after) {
  static std::mutex mutex;
  static double squares = 0;
  const std::lock_guard lock(mutex);
  squares = std::max(0.0, squares + after * after - before * before);
  metered::gain_error.set({}, std::sqrt(squares));
}

std::optional<migrate::Wave> ended_wave(const crds::BspJobStatus& status) {
  const auto wave = stored_wave(status);
  return wave && *wave && migrate::is_finished(**wave) ? *wave : std::nullopt;
}

}  // namespace

JobMeter::~JobMeter() {
  for (Metric* gauge : {&metered::load_balance, &metered::pods_waiting, &metered::ranks_held, &metered::conditions,
                        &metered::node_slowness})
    gauge->remove({name_space_, name_});
}

void JobMeter::show(const Observed& o, const crds::BspJobStatus& now) {
  const Metric::Values job{name_space_, name_};
  const bool over = crds::is_finished(now.phase);
  const auto waits =
      std::ranges::count_if(o.pods, [](const auto& pod) { return pod.second.address.empty() && !pod.second.deleting; });
  metered::pods_waiting.set(job,
                            over ? 0 : static_cast<double>(waits + static_cast<std::ptrdiff_t>(o.not_created.size())));
  metered::ranks_held.set(job, over ? 0 : static_cast<double>(std::ranges::count_if(now.ranks, [](const auto& place) {
                            return !place.blocked_reason.empty();
                          })));
  std::map<Metric::Values, double> are_true;
  for (const crds::Condition& c : now.conditions)
    if (c.status == crds::ConditionStatus::kTrue) are_true[{name_space_, name_, c.type}] = 1;
  metered::conditions.replace(job, are_true);
  double sum = 0, most = 0;
  for (const crds::RankPlace& place : now.ranks) {
    sum += place.compute_seconds;
    most = std::max(most, place.compute_seconds);
  }
  const double mean = now.ranks.empty() ? 0 : sum / static_cast<double>(now.ranks.size());
  if (most > 0) metered::load_balance.set(job, mean / most);
  const std::uint64_t superstep = now.superstep.value;
  if (superstep_ != 0 && superstep > superstep_)
    metered::lost_seconds.add({name_space_}, static_cast<double>(superstep - superstep_) * (most - mean));
  superstep_ = superstep;
  show_nodes(now);
}

void JobMeter::show_nodes(const crds::BspJobStatus& now) const {
  struct Sum {
    double seconds = 0;
    double ranks = 0;
    [[nodiscard]] double mean() const { return seconds / ranks; }
  };
  std::map<std::string, Sum> sets;
  std::map<std::pair<std::string, std::string>, Sum> nodes;
  for (const crds::RankPlace& place : now.ranks)
    for (Sum* sum : {&sets[place.set], &nodes[{place.set, place.node}]}) {
      sum->seconds += place.compute_seconds;
      ++sum->ranks;
    }
  std::map<Metric::Values, double> slowness;
  for (const auto& [where, sum] : nodes)
    if (sets[where.first].seconds > 0 && nodes.size() <= kMostNodes)
      slowness[{name_space_, name_, where.first, where.second}] = sum.mean() / sets[where.first].mean();
  metered::node_slowness.replace({name_space_, name_}, slowness);
}

void JobMeter::measured(const std::vector<RealisedGain>& gains) {
  for (const RealisedGain& gain : gains)
    metered::measured.add({gain.is_noise ? "noise" : gain.seconds > 0 ? "gained" : "lost"});
}

void JobMeter::stored(const crds::BspJobStatus& before, const crds::BspJobStatus& after) const {
  if (before.phase == crds::JobPhase::kMigrating && after.wave_state != before.wave_state)
    if (const auto ended = ended_wave(after); ended && !ended_wave(before)) count_wave(*ended);
  const auto made_at = [](const auto& decision) { return decision ? decision->superstep.value : 0; };
  if (made_at(after.last_decision) != made_at(before.last_decision) &&
      after.last_decision->outcome == crds::kTakingBack)
    metered::taken_back.add({name_space_});
  count_resizes(before, after);
  metered::gain_seconds.add({"predicted"},
                            after.predicted_gain_seconds.value_or(0) - before.predicted_gain_seconds.value_or(0));
  metered::gain_seconds.add({"realised"},
                            after.realised_gain_seconds.value_or(0) - before.realised_gain_seconds.value_or(0));
  const double error = after.realised_gain_error_seconds.value_or(0);
  if (const double old = before.realised_gain_error_seconds.value_or(0); error != old) add_error(old, error);
  if (after.restarts.size() > 0 && after.attempt > before.attempt)
    metered::restarts.add({after.restarts.back().reason});
  if (crds::is_finished(after.phase) && !crds::is_finished(before.phase))
    metered::finished.add({std::string(crds::to_string(after.phase)), after.reason});
}

}  // namespace bsp::reconcile
