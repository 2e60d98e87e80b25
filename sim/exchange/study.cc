#include "sim/exchange/study.h"

#include <algorithm>
#include <format>

#include "sim/exchange/chart.h"
#include "sim/exchange/runs.h"
#include "sim/exchange/sections.h"

namespace bsp::sim::exchange {
namespace {

constexpr Variant kMechanisms[] = {kNaive, kIncrements, kSnapshot, kSnapshotThreaded};
constexpr std::uint32_t kSourceSizes[] = {64, 128};
constexpr double kThresholdFactors[] = {0.25, 1, 4, 16};

class Report {
 public:
  Report(const StudyParams& params, std::string command, std::string picture_name)
      : params_(params), command_(std::move(command)), picture_name_(std::move(picture_name)), runs_(params) {}

  Study make() {
    for (const std::uint32_t n : params_.sizes)
      for (const Variant v : {kBest, kNaive, kIncrements, kSnapshot, kSnapshotThreaded}) {
        runs_.plan(key(v, n, false));
        if (close_too(n)) runs_.plan(key(v, n, true));
      }
    for (const std::uint32_t n : source_sizes())
      for (const Variant v : {kNaiveThreaded, kIncrementsThreaded}) runs_.plan(key(v, n, false));
    for (const std::uint32_t n : sweep_sizes())
      for (const double factor : kThresholdFactors)
        for (const Variant v : {kBest, kNaive, kIncrements}) runs_.plan(sweep_key(v, n, factor));
    runs_.run();

    introduction();
    shape();
    solver_tables();
    close_table();
    threaded_table();
    threshold_table();
    text_.text += pools_section(params_) + gathering_section(params_);
    return {.markdown = std::move(text_.text), .picture = picture()};
  }

 private:
  [[nodiscard]] RunKey key(Variant v, std::uint32_t n, bool close) const { return {v, n, close, params_.threshold}; }
  [[nodiscard]] RunKey sweep_key(Variant v, std::uint32_t n, double factor) const {
    return {v, n, false, v == kBest ? params_.threshold : factor * params_.threshold};
  }
  [[nodiscard]] const RunMean& at(Variant v, std::uint32_t n, bool close = false) const {
    return runs_[key(v, n, close)];
  }
  static bool close_too(std::uint32_t n) { return n <= 256; }
  [[nodiscard]] std::vector<std::uint32_t> source_sizes() const {
    std::vector<std::uint32_t> sizes;
    for (const std::uint32_t n : kSourceSizes)
      if (std::ranges::find(params_.sizes, n) != params_.sizes.end()) sizes.push_back(n);
    return sizes;
  }
  [[nodiscard]] std::vector<std::uint32_t> sweep_sizes() const {
    return source_sizes().empty() ? std::vector<std::uint32_t>{} : std::vector{source_sizes().front()};
  }

  void line(const std::string& text) { text_.line(text); }
  template <class... Args>
  void say(std::format_string<Args...> format, Args&&... args) {
    text_.say(format, std::forward<Args>(args)...);
  }
  // A row for each size, a column for each mechanism.
  void table(bool close, double (*value)(const RunMean&), const char* format) {
    std::string head = "| processes |";
    std::string rule = "| ---: |";
    for (const Variant v : kMechanisms) {
      head += " " + v.name() + " |";
      rule += " ---: |";
    }
    line(head + "\n" + rule);
    for (const std::uint32_t n : params_.sizes) {
      if (close && !close_too(n)) continue;
      std::string row = std::format("| {} |", n);
      for (const Variant v : kMechanisms) {
        const double x = value(at(v, n, close));
        row += " " + std::vformat(format, std::make_format_args(x)) + " |";
      }
      line(row);
    }
    line("");
  }

  void introduction();
  void shape();
  void solver_tables();
  void close_table();
  void threaded_table();
  void threshold_table();
  [[nodiscard]] std::string picture() const;

  StudyParams params_;
  std::string command_;
  std::string picture_name_;
  Runs runs_;
  Text text_;
};

double messages_of(const RunMean& m) { return m.messages; }
double error_of(const RunMean& m) { return m.outcome.view_error * 1e3; }
double peak_of(const RunMean& m) { return m.outcome.peak * 1e3; }
double slowdown_of(const RunMean& m) { return (m.slowdown - 1) * 100; }
double wait_of(const RunMean& m) { return m.outcome.wait * 1e3; }
// The whole cost of snapshots: waiting for one's own view, and being held for others'.
double cost_of(const RunMean& m) { return m.outcome.waited + m.outcome.held; }

void Report::introduction() {
  const WorkloadParams w = runs_.workload(64, false, 0);
  const WorkloadParams close = runs_.workload(64, true, 0);
  const Cluster c;
  line("# Load exchange: three mechanisms, and how reports are gathered\n");
  line("Written by a program; do not edit. Made with:\n");
  say("    {}\n", command_);
  line(
      "The mechanisms are those of `operator/exchange`, the very state machines; only the work, the network and the "
      "clock are");
  line(
      "simulated. The source is A. Guermouche and J.-Y. L'Excellent, *A study of various load information exchange "
      "mechanisms for a");
  line(
      "distributed application using dynamic scheduling* (INRIA RR-5478, 2005), which measured them in a sparse direct "
      "solver.\n");
  say("![messages, error of the view, waiting and makespan by number of deciders]({})\n", picture_name_);
  line("## The workload\n");
  say("Masters of a sparse solver choose slaves. Each of n processes has {} tasks of its own, log-normal with median "
      "{} ms and σ {:g},",
      w.tasks, w.task_seconds * 1e3, w.task_sigma);
  say("times a log-normal factor of σ {:g} for each process (the static mapping's error); all know these sums at the "
      "start. Each is",
      w.imbalance_sigma);
  say("master of 0 to {} fronts (one on average), at random places of its queue; a front is log-normal work, median "
      "{:g} s and σ {:g}, which its",
      w.fronts, w.front_seconds, w.front_sigma);
  say("master gives to at most {} slaves: those that it believes least loaded, so that all of them end at one level. A "
      "slave computes a",
      w.slaves);
  say("share in panels of {:g} ms before its own tasks. A process looks at messages between two tasks or panels only; "
      "\"threaded\" means",
      w.panel_seconds * 1e3);
  say("that a second thread looks every {:g} µs and takes its time from the first. A message costs {:g} µs of CPU to "
      "send and {:g} µs to",
      c.poll * 1e6, c.send * 1e6, c.receive * 1e6);
  say("receive, and travels {:g} µs. Naive and Increments broadcast changes above {:g} ms of work, the median task; a "
      "process that will",
      c.latency * 1e6, params_.threshold * 1e3);
  line(
      "decide no more says NoMoreMaster. During a snapshot, as in the source, who has answered begins no task until "
      "the asker has decided.");
  say("\"Close\" decisions: all fronts stand between {:g} % and {:g} % of the queues instead of anywhere.",
      close.fronts_from * 100, (close.fronts_from + close.fronts_spread) * 100);
  say("Figures are means over {} workloads up to 128 processes, one beyond; seed {}. \"Best\": all masters see the "
      "true loads at once and",
      params_.repeats, params_.seed);
  line("for nothing.\n");
  line(
      "The network is a latency and two costs, so an event queue stands in for SimGrid: a broadcast is one event "
      "there, not one flow and one");
  line("woken actor for each receiver, and the largest run delivers tens of millions of messages.\n");
}

void Report::shape() {
  const auto sizes = source_sizes();
  if (sizes.empty()) return;
  line("## The source's findings, and these\n");
  line("| the source found | here | |");
  line("| --- | --- | --- |");
  const auto verdict = [&](const char* found, const std::string& here, const char* word) {
    say("| {} | {} | {} |", found, here, word);
  };
  const auto row = [&](const char* found, const std::string& here, bool holds) {
    verdict(found, here, holds ? "the same" : "**differs**");
  };
  std::string ratios;
  bool in_range = true;
  bool near = true;
  for (const std::uint32_t n : sizes) {
    const double ratio = at(kIncrements, n).messages / at(kSnapshot, n).messages;
    ratios += std::format("{}{:.0f} times at {}", ratios.empty() ? "" : ", ", ratio, n);
    in_range = in_range && ratio >= 25 && ratio <= 35;
    near = near && ratio >= 20 && ratio <= 40;
  }
  verdict("Snapshot needs 25 to 35 times fewer messages than Increments at 64 to 128 processes", ratios,
          in_range ? "the same" : (near ? "near" : "**differs**"));

  bool accurate = true;
  bool waits = true;
  double closest = 0;
  double naive_spread = 0;
  double naive_close = 0;
  double increments_close = 0;
  std::size_t closes = 0;
  const double front = runs_.workload(64, false, 0).front_seconds * 1e3;
  for (const std::uint32_t n : params_.sizes) {
    accurate = accurate && error_of(at(kSnapshot, n)) < error_of(at(kIncrements, n)) &&
               error_of(at(kSnapshot, n)) < error_of(at(kNaive, n));
    waits = waits && wait_of(at(kSnapshot, n)) > wait_of(at(kIncrements, n));
    closest = std::max(closest, peak_of(at(kIncrements, n)) - peak_of(at(kSnapshot, n)));
    if (!close_too(n)) continue;
    ++closes;
    naive_spread += peak_of(at(kNaive, n));
    naive_close += peak_of(at(kNaive, n, true));
    increments_close += peak_of(at(kIncrements, n, true));
  }
  const std::uint32_t last = sizes.back();
  row("Snapshot's view is the most accurate",
      std::format("mean error at {} processes: Snapshot {:.1f} ms, Increments {:.1f}, Naive {:.1f}", last,
                  error_of(at(kSnapshot, last)), error_of(at(kIncrements, last)), error_of(at(kNaive, last))),
      accurate);
  row("Snapshot waits more",
      std::format("for a view at {} processes: {:.0f} ms, Increments {:.2f}", last, wait_of(at(kSnapshot, last)),
                  wait_of(at(kIncrements, last))),
      waits);
  row("Increments is never far from Snapshot in quality",
      std::format("its slaves' highest load is at most {:.1f} ms further from the possible one, at any size; the "
                  "median front has {:g} ms",
                  closest, front),
      closest < 0.05 * front);
  if (closes > 0) {
    const auto n = static_cast<double>(closes);
    row("Naive is worse where decisions are close in time",
        std::format("excess of the highest load: Naive {:.1f} ms spread, {:.1f} ms close; Increments {:.1f} ms close",
                    naive_spread / n, naive_close / n, increments_close / n),
        naive_close > naive_spread && naive_close > 2 * increments_close);
  }
  std::string factors;
  bool large = true;
  bool far_larger = false;
  for (const std::uint32_t n : sizes) {
    const double factor = cost_of(at(kSnapshot, n)) / cost_of(at(kSnapshotThreaded, n));
    factors += std::format("{}{:.1f} times at {}", factors.empty() ? "" : ", ", factor, n);
    large = large && factor > 4;
    far_larger = far_larger || factor > 20;
  }
  verdict("Answering from a second thread cuts what snapshots cost (100 s to 14 s in one case: 7 times)", factors,
          !large ? "**differs**" : (far_larger ? "the same way, far more" : "the same"));
  line("");
  line(
      "\"The same\" stands where, in this order: the ratio is within 25 to 35 (\"near\": 20 to 40); the error of "
      "Snapshot, unthreaded, is");
  line(
      "the smallest at every size; its wait the longest at every size; Increments' excess less than 5 % of a front "
      "above Snapshot's at");
  line(
      "every size; Naive's excess grows when decisions come close, and is then more than twice Increments'; the factor "
      "is above 4");
  line(
      "(\"far more\": above 20; nothing but its period delays the second thread here). The ratio of messages is no "
      "constant of the");
  line(
      "mechanisms: it is (broadcasts between two decisions × the share of processes that still decide) / 3, and the "
      "table of thresholds");
  line("below shows how far it goes.\n");
}

void Report::solver_tables() {
  line("## Messages\n");
  table(false, messages_of, "{:.0f}");
  line(
      "An uncontended snapshot takes 3(n − 1): Start, Answer, End. What is above that was asked again because a "
      "smaller rank came first.\n");
  line("## Error of the view at a decision\n");
  line("Mean over members of |believed − true load|, ms of work.\n");
  table(false, error_of, "{:.2f}");
  line("## Quality of decisions\n");
  line(
      "How far the highest load among the chosen slaves really is above the level that the true loads would have "
      "allowed, ms of work.\n");
  table(false, peak_of, "{:.2f}");
  line(
      "Makespan above the best one, %. It holds everything: bad choices, CPU time of messages, waiting. (There are as "
      "many decisions as processes, while a");
  line(
      "process's own work stays the same; snapshots come one after the other, and unthreaded each stops everybody for "
      "as long as the longest task lasts.)\n");
  table(false, slowdown_of, "{:+.1f}");
  line("## Waiting\n");
  line("From wanting to decide until the view is ready, ms for each decision.\n");
  table(false, wait_of, "{:.2f}");
  line("In all, own waiting and standing still for others' decisions, s over all processes.\n");
  table(false, cost_of, "{:.2f}");
}

void Report::close_table() {
  if (std::ranges::none_of(params_.sizes, close_too)) return;
  line("## Decisions close in time\n");
  line("Excess of the highest load, ms of work:\n");
  table(true, peak_of, "{:.2f}");
  line("Makespan above the best, %:\n");
  table(true, slowdown_of, "{:+.1f}");
  line("Wait, ms for each decision:\n");
  table(true, wait_of, "{:.2f}");
}

void Report::threaded_table() {
  if (source_sizes().empty()) return;
  line("## A second thread\n");
  line(
      "| processes | mechanism | messages read by | error (ms) | excess (ms) | waiting and standing still (s, all) | "
      "makespan above best (%) |");
  line("| ---: | --- | --- | ---: | ---: | ---: | ---: |");
  for (const std::uint32_t n : source_sizes())
    for (const auto& [plain, threaded] :
         {std::pair{kNaive, kNaiveThreaded}, std::pair{kIncrements, kIncrementsThreaded},
          std::pair{kSnapshot, kSnapshotThreaded}})
      for (const Variant v : {plain, threaded}) {
        const RunMean& m = at(v, n);
        say("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:+.1f} |", n, to_string(*v.mechanism),
            v.threaded ? "a thread" : "the computing one", error_of(m), peak_of(m), cost_of(m), slowdown_of(m));
      }
  line("");
}

void Report::threshold_table() {
  for (const std::uint32_t n : sweep_sizes()) {
    say("## The threshold, {} processes\n", n);
    say("Snapshot has none: {:.0f} messages.\n", at(kSnapshot, n).messages);
    line(
        "| threshold (ms) | Increments: messages | against Snapshot | error (ms) | excess (ms) | Naive: messages | "
        "error (ms) | excess (ms) |");
    line("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (const double factor : kThresholdFactors) {
      const RunMean& inc = runs_[sweep_key(kIncrements, n, factor)];
      const RunMean& naive = runs_[sweep_key(kNaive, n, factor)];
      say("| {:.2f} | {:.0f} | × {:.1f} | {:.2f} | {:.2f} | {:.0f} | {:.2f} | {:.2f} |",
          factor * params_.threshold * 1e3, inc.messages, inc.messages / at(kSnapshot, n).messages, error_of(inc),
          peak_of(inc), naive.messages, error_of(naive), peak_of(naive));
    }
    line("");
  }
}

std::string Report::picture() const {
  const auto panel = [&](const char* title, const char* y, bool log_y, double (*value)(const RunMean&)) {
    Panel p{.title = title, .x = "deciders", .y = y, .log_y = log_y, .lines = {}};
    for (const Variant v : kMechanisms) {
      Line l{.name = v.name(), .points = {}};
      for (const std::uint32_t n : params_.sizes) l.points.emplace_back(n, value(at(v, n)));
      p.lines.push_back(std::move(l));
    }
    return p;
  };
  std::vector<Panel> panels{panel("Messages", "sent in all", true, messages_of),
                            panel("Error of the view", "ms of work", true, error_of),
                            panel("Waiting for a view", "ms for each decision", true, wait_of),
                            panel("Makespan above the best", "%", false, slowdown_of)};
  Panel latency{.title = "Gathering: latency", .x = "ranks", .y = "ms", .log_y = true, .lines = {}};
  Panel cpu{.title = "Gathering: the operator's CPU", .x = "ranks", .y = "ms", .log_y = true, .lines = {}};
  for (const auto& [way, name] : {std::pair{Gathering::kFlat, "flat"}, std::pair{Gathering::kManagers, "Set Managers"},
                                  std::pair{Gathering::kCondensed, "condensed"}}) {
    latency.lines.push_back({.name = name, .points = {}});
    cpu.lines.push_back({.name = name, .points = {}});
    for (const std::uint32_t ranks : {1'000u, 10'000u, 100'000u}) {
      GatherParams g = params_.gather;
      g.ranks = ranks;
      g.report_bytes += params_.report_superstep_bytes;
      const Gathered r = gather(way, g);
      latency.lines.back().points.emplace_back(ranks, r.latency * 1e3);
      cpu.lines.back().points.emplace_back(ranks, r.operator_cpu * 1e3);
    }
  }
  panels.push_back(std::move(latency));
  panels.push_back(std::move(cpu));
  return chart(panels);
}

}  // namespace

Study run_study(const StudyParams& params, const std::string& command, const std::string& picture_name) {
  return Report(params, command, picture_name).make();
}

}  // namespace bsp::sim::exchange
