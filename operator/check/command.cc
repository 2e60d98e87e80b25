#include "operator/check/command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <format>
#include <optional>

#include "base/json/fields.h"
#include "crds/manifest.h"
#include "operator/check/check.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/input.h"
#include "operator/cli/live.h"
#include "operator/kinds.h"
#include "operator/local/cli/one_job.h"
#include "operator/local/cli/place.h"
#include "operator/local/pod_plan.h"
#include "operator/local/podman.h"
#include "operator/local/pools.h"
#include "operator/screens/move.h"

namespace bsp::checking {
namespace {

using std::chrono::steady_clock;

constexpr std::uint32_t kRanks = 2;
constexpr const char* kFrom = "here";
constexpr const char* kTo = "there";

struct Options : CheckOptions {
  std::string image;
  std::vector<std::string> command;
  std::string file;
  bool json = false;
};

Result<Options> parse(std::span<const std::string> words) {
  Options o;
  cli::Command command("bsp-operator check",
                       "Run two ranks of a program on this machine, move each once, and report what was found.");
  command.argument("IMAGE", "an image in Podman's store", o.image);
  command.rest("COMMAND", "the program and its arguments (default: the image's)", o.command);
  command.text("-f,--filename", "JOB.yaml",
               "a BSPJob instead of an image, with its variables and volumes; - reads standard input", o.file);
  command.option("-o,--output", "FORMAT", "text or json (default: text)",
                 cli::one_of(o.json, {{"text", false}, {"json", true}}));
  declare_options(command, o);
  BSP_CHECK_OK(command.parse(words));
  if (o.image.empty() == o.file.empty()) return command.wrong("give either IMAGE or -f JOB.yaml");
  return o;
}

Result<crds::BspJob> job_of(const Options& o) {
  if (!o.file.empty()) {
    BSP_TRY(const cli::Input input, cli::read_input(o.file));
    return crds::read_bsp_job(input.text, input.name);
  }
  BSP_TRY(const auto config, local::podman::image_config(o.image));
  if (o.command.empty() && config.entrypoint.empty() && config.command.empty())
    return fail(ErrorCode::kInvalid,
                std::format("image {} has no command of its own; name one after it: bsp-operator check {} "
                            "COMMAND",
                            o.image, o.image));
  nlohmann::json app = {{"name", names::kAppContainer}, {"image", o.image}};
  if (!o.command.empty()) app["command"] = o.command;
  crds::BspJob job;
  job.metadata.name = "check";
  job.spec.pod_template = {{"spec", {{"containers", nlohmann::json::array({std::move(app)})}}}};
  return job;
}

std::string words_of(const nlohmann::json& app) {
  std::string text;
  for (const char* part : {"command", "args"})
    if (const auto found = app.find(part); found != app.end())
      for (const nlohmann::json& word : *found)
        if (word.is_string()) text += (text.empty() ? "" : " ") + word.get<std::string>();
  return text;
}

class Check {
 public:
  explicit Check(const CheckOptions& options)
      : options_(options), one_(options_.serve, [](const std::string& line) { note(line); }) {}

  Result<Checked> operator()(crds::BspJob job) {
    job.spec.ranks = kRanks;
    job.spec.sets.names = {kFrom, kTo};
    job.spec.rescheduling.mode = crds::ReschedulingMode::kOff;
    job.spec.run_policy.backoff_limit = 0;
    const nlohmann::json& app = *crds::app_container(job.spec);
    report_.image = text_at(app, "image");
    report_.command = words_of(app);
    report_.cpu = CpuFeatures::of_this_machine();
    BSP_CHECK_OK(one_.prepare(std::move(job), {{.name = kFrom, .nodes = kRanks, .cpu = options_.cpu},
                                               {.name = kTo, .nodes = kRanks, .cpu = options_.cpu}}));
    note(std::format("Running two ranks of {}", report_.image));
    auto seen = find_out();
    const auto removed = one_.remove();
    if (!seen) return std::unexpected(seen.error());
    if (!removed) return std::unexpected(removed.error().in("cleaning up"));
    return Checked{.report = std::move(report_), .signal = one_.signal()};
  }

 private:
  using Turn = local::OneJob::Turn;

  static void note(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

  // Takes turns until `until` is true. False if the time is up or the job has ended, which `failure` then says.
  template <class Condition>
  Result<bool> wait(std::chrono::duration<double> limit, Condition until) {
    const auto deadline = steady_clock::now() + limit;
    for (;;) {
      BSP_TRY(const Turn turn, one_.next());
      observe();
      if (turn != Turn::kGoesOn) return say_end(turn), false;
      if (until()) return true;
      if (steady_clock::now() >= deadline) return false;
    }
  }

  Result<void> find_out() {
    BSP_CHECK_OK(one_.start());
    BSP_TRY(const bool began,
            wait(std::chrono::duration<double>(options_.start_seconds), [this] { return initialised(); }));
    if (!began)
      return say(
          std::format("its ranks didn't come to MPI_Init within {:.0f} s (--start-seconds)", options_.start_seconds));
    began_ = steady_clock::now();
    note(std::format("Watching it for {:.0f} s", options_.seconds));
    BSP_TRY(const bool lasted, wait(std::chrono::duration<double>(options_.seconds), [] {
                                 return false;
                               }).transform([this](bool) { return report_.failure.empty(); }));
    if (!lasted) return {};
    watching_ = false;
    if (report_.program.edge_call.empty())
      return say(
          "ranks don't move, because no blocking collective of all ranks recurs, where a superstep could end; "
          "spec.superstep can "
          "name one that comes more rarely");
    for (std::uint32_t rank = kRanks; rank-- > 0 && report_.failure.empty();) BSP_CHECK_OK(move(rank));
    return {};
  }

  Result<void> move(std::uint32_t rank) {
    note(std::format("Moving rank {}", rank));
    BSP_TRY(const auto wanted, screens::migration_for(one_.job(), {.rank = rank, .set = kTo, .node = ""}, {kFrom, kTo},
                                                      std::nullopt, SystemClock::now()));
    nlohmann::json request;
    to_json(request, wanted);
    BSP_CHECK_OK(one_.store().create(request).transform([](const auto&) {}));
    std::optional<crds::RankMigration> last;
    const auto ended = [&] {
      for (crds::RankMigration& m : one_.migrations())
        if (m.metadata.name == wanted.metadata.name) last = std::move(m);
      return last && crds::is_finished(last->status.phase);
    };
    BSP_TRY(const bool done, wait(std::chrono::duration<double>(options_.move_seconds), ended));
    const bool succeeded = ended() && last->status.phase == crds::MigrationPhase::kSucceeded;
    Move& move = report_.moves.emplace_back(Move{.rank = rank, .succeeded = succeeded, .message = "", .pause = {}});
    if (last) move.bytes = last->status.bytes, move.pause = last->status.pause, move.message = last->status.message;
    if (succeeded) {
      move.message.clear();
      report_.failure.clear();  // a program that ends right after its move has moved
      return {};
    }
    if (!done && report_.failure.empty()) move.message = unfinished(last);
    return say(std::format("rank {} didn't move: {}", rank, move.message.empty() ? report_.failure : move.message));
  }

  std::string unfinished(const std::optional<crds::RankMigration>& last) const {
    const double seconds = options_.move_seconds;
    if (!report_.holds.empty())
      return std::format("not within {:.0f} s, because of rank {}: {}", seconds, report_.holds.back().rank,
                         report_.holds.back().reason);
    return std::format("not within {:.0f} s{}", seconds,
                       last && !last->status.message.empty() ? ": " + last->status.message : "");
  }

  // The first reason counts.
  Result<void> say(const std::string& failure) {
    if (report_.failure.empty()) report_.failure = failure;
    return {};
  }

  void say_end(Turn turn) {
    const crds::BspJobStatus& status = one_.job().status;
    if (turn == Turn::kFinished && status.phase == crds::JobPhase::kSucceeded)
      say(began_ == steady_clock::time_point{}
              ? std::string("it ended by itself, with status 0, before it was seen in MPI; name a command or an input "
                            "that takes longer")
              : std::format(
                    "it ended by itself, with status 0, {:.0f} s after MPI_Init; name a command or an input that takes "
                    "longer, or a smaller --seconds",
                    since(began_)));
    else if (turn == Turn::kFinished)
      say("it failed: " + status.message);
    else
      say(turn == Turn::kGone ? "its job was deleted" : "the operator couldn't run it");
  }

  static double since(steady_clock::time_point then) {
    return std::chrono::duration<double>(steady_clock::now() - then).count();
  }

  [[nodiscard]] bool initialised() const { return !report_.program.open_mpi.empty(); }

  // What can be read now, before it goes.
  void observe() {
    for (const crds::RankPlace& place : one_.job().status.ranks) {
      if (!place.blocked_reason.empty())
        if (const Hold hold{place.rank.value, place.blocked_reason}; !std::ranges::contains(report_.holds, hold))
          report_.holds.push_back(hold);
      if (place.rank.value == 0 && watching_) watch(place.pod);
    }
  }

  void watch(const std::string& pod) {
    if (pod_ != pod) {
      const auto object = one_.store().get({{kPod.api_version, kPod.kind}, options_.serve.place.name_space, pod});
      if (!object) return;
      run_dir_ = local::pod_dir(one_.store().directory(), pod, text_at(part_at(*object, "metadata"), "uid")) +
                 "/volumes/bsp-run";
      pod_ = pod;
    }
    const auto program = read_program(run_dir_);
    if (!program) return;
    report_.program = *program;
    if (began_ == steady_clock::time_point{}) return;
    report_.watched_seconds = since(began_);
    if (program->edge_call.empty()) return;
    if (const std::pair edge(program->edge_call, program->edge_stride); edge != edge_) {
      edge_ = edge;
      first_superstep_ = program->supersteps;
      edge_since_ = steady_clock::now();
    }
    if (program->supersteps > first_superstep_)
      report_.superstep_seconds = since(edge_since_) / static_cast<double>(program->supersteps - first_superstep_);
  }

  CheckOptions options_;
  local::OneJob one_;
  Report report_;
  steady_clock::time_point began_{};  // when MPI was seen to be initialised
  bool watching_ = true;
  std::string pod_, run_dir_;  // of rank 0
  std::pair<std::string, std::uint64_t> edge_;
  std::uint64_t first_superstep_ = 0;  // that ended at this edge
  steady_clock::time_point edge_since_;
};

}  // namespace

CheckOptions::CheckOptions() { serve.place.name_space = "check"; }

void declare_options(cli::Command& command, CheckOptions& options) {
  command.option("--seconds", "N", "how long to watch the program before its ranks move (default: 10)",
                 cli::number(options.seconds, 1.0, 3600.0));
  command.option("--start-seconds", "N", "how long it may take to come to MPI_Init (default: 60)",
                 cli::number(options.start_seconds, 1.0, 3600.0));
  command.option("--move-seconds", "N", "how long a move may be held back (default: 60)",
                 cli::number(options.move_seconds, 1.0, 3600.0));
  command.option("--cpu", "CORES", "cores for each rank (default: 1)", cli::number(options.cpu, 0.01, 1024.0));
  local::declare_place(command, options.serve.place);
}

Result<void> check_usable() { return local::podman::check_usable(); }

Result<void> find_image(const crds::BspJob& job) {
  return local::podman::image_config(text_at(*crds::app_container(job.spec), "image")).transform([](const auto&) {});
}

Result<Checked> check_job(crds::BspJob job, const CheckOptions& options) { return Check(options)(std::move(job)); }

Result<int> run(std::span<const std::string> words) {
  BSP_TRY(const Options options, parse(words));
  BSP_TRY(crds::BspJob job, job_of(options));
  BSP_TRY(const Checked checked, check_job(std::move(job), options));
  if (checked.signal != 0) return cli::kSignalled + checked.signal;
  if (options.json)
    std::printf("%s\n", json_of(checked.report).dump(2).c_str());
  else
    cli::print_lines(lines_of(checked.report));
  return checked.report.failure.empty() ? cli::kDone : cli::kFailed;
}

}  // namespace bsp::checking
