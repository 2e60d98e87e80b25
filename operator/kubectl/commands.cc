#include "operator/kubectl/commands.h"

#include <poll.h>

#include <cstdio>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/rankmigration.h"
#include "operator/cli/exit_code.h"
#include "operator/cli/live.h"
#include "operator/kubectl/kubectl.h"
#include "operator/screens/drain_plan.h"
#include "operator/screens/explain.h"
#include "operator/screens/move.h"
#include "operator/screens/printable.h"
#include "operator/screens/timeline.h"
#include "operator/screens/top.h"

namespace bsp::kubectl {
namespace {

using nlohmann::json;
using Words = std::span<const std::string>;

const std::string kJobs = std::format("bspjobs.{}", names::kGroup);
const std::string kMigrations = std::format("rankmigrations.{}", names::kGroup);

Time now() { return SystemClock::now(); }

// An error of a job that the cluster has and that can't be read.
Error unreadable(const Error& error, const std::string& name) {
  return error.in(std::format("BSPJob {} as the cluster has it", name));
}

Result<crds::BspJob> get_job(const Kubectl& kubectl, const std::string& name) {
  BSP_TRY(const json object, kubectl.get({kJobs, name}));
  return crds::bsp_job_from_json(object).transform_error([&](const Error& e) { return unreadable(e, name); });
}

Result<screens::Shown> get_shown(const Access& access, const std::string& name, bool quiet) {
  BSP_TRY(const json job, Kubectl(access, quiet).get({kJobs, name}));
  Access same = access;
  same.name_space = text_at(part_at(job, "metadata"), "namespace");
  BSP_TRY(const json list, Kubectl(same, quiet).get({kMigrations}));
  return screens::shown_of(job, items_of(list)).transform_error([&](const Error& e) { return unreadable(e, name); });
}

struct Parsed {
  std::string job;
  Access access;
};

void declare_job(cli::Command& command, Parsed& parsed) {
  command.argument("JOB", "name of the BSPJob", parsed.job).required();
  declare_access(command, parsed.access);
}

// Nodes are the administrator's: who may not read them leaves the check to the operator.
Result<void> check_node(Access access, const std::string& node) {
  if (node == crds::kAnyOtherNode) return {};
  BSP_CHECK_OK(check_name("NODE", node));
  access.name_space = "";
  const auto found = Kubectl(std::move(access), true).get({"nodes", node});
  if (!found && found.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kInvalid, std::format("there is no node {}", node));
  return {};
}

Result<int> follow(const Kubectl& kubectl, const std::string& migration) {
  bool first = true;
  const auto read = [&]() -> Result<crds::RankMigration> {
    if (!std::exchange(first, false)) ::poll(nullptr, 0, kPollMs);
    BSP_TRY(const json object, kubectl.get({kMigrations, migration}));
    return crds::rank_migration_from_json(object);
  };
  return screens::follow(read, [](const std::string& line) { cli::print_lines({line}); });
}

}  // namespace

Result<int> explain(Words words) {
  Parsed parsed;
  cli::Command command("kubectl bsp explain", "Say in one screen why no rank of a job moves, or why ranks moved.");
  declare_job(command, parsed);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", parsed.job));
  BSP_TRY(const auto shown, get_shown(parsed.access, parsed.job, false));
  cli::print_lines(screens::explain(shown, now()));
  return cli::kDone;
}

Result<int> top(Words words) {
  Parsed parsed;
  bool once = false;
  cli::Command command("kubectl bsp top",
                       "Show a job live, with a bar for each Set and rank: the computing time of a superstep.");
  declare_job(command, parsed);
  command.flag("--once", "print one frame", once);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", parsed.job));
  bool first = true;
  const auto draw = [&](cli::ScreenSize size) -> Result<cli::Drawn> {
    BSP_TRY(const auto shown, get_shown(parsed.access, parsed.job, !first));
    first = false;
    return cli::Drawn{screens::top(shown, now(), size), crds::is_finished(shown.job.status.phase)};
  };
  return cli::show_live(draw, once);
}

Result<int> timeline(Words words) {
  Parsed parsed;
  std::string record;
  cli::Command command("kubectl bsp timeline",
                       "Draw a job's run as SVG on standard output: where each rank was, its moves and the pauses.");
  declare_job(command, parsed);
  command.text("--record", "FILE", "the job's recorded calls (--record-directory), for α, D and computing time",
               record);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", parsed.job));
  BSP_TRY(const auto shown, get_shown(parsed.access, parsed.job, false));
  BSP_TRY(const auto calls, screens::calls_of_file(record, shown.job));
  std::fputs(screens::timeline_svg(shown, calls, Time{}, now()).c_str(), stdout);
  return cli::kDone;
}

Result<int> migrate(Words words) {
  Parsed parsed;
  bool waits = false;
  screens::MoveWish wish;
  std::optional<std::uint32_t> rank;
  cli::Command command("kubectl bsp migrate", "Move a rank to a Set or a node: create a RankMigration.");
  command.argument("JOB", "name of the BSPJob", parsed.job).required();
  command.argument("RANK", "number of the rank", cli::number(rank)).required();
  command.text("--to", "SET", "target Set", wish.set);
  command.text("--to-node", "NODE", "target node, instead of --to; '*': any other of the job's Sets", wish.node);
  command.flag("--wait", "wait until the migration has ended; exit status 0 if it succeeded", waits);
  declare_access(command, parsed.access);
  BSP_CHECK_OK(command.parse(words));
  if (wish.set.empty() == wish.node.empty()) return command.wrong("give either --to or --to-node");
  BSP_CHECK_OK(check_name("JOB", parsed.job));
  wish.rank = *rank;
  const Kubectl kubectl(parsed.access);
  BSP_TRY(const crds::BspJob job, get_job(kubectl, parsed.job));
  std::set<std::string> sets;  // the job's status names them, so that its owner needn't read nodes
  for (const auto& set : job.status.ranks_per_set) sets.insert(set.set);
  sets.erase("");
  if (sets.empty() && !crds::is_finished(job.status.phase))
    return fail(ErrorCode::kRefused, std::format("job {} is {}: it has no ranks yet that could move", parsed.job,
                                                 crds::to_string(job.status.phase)));
  if (!wish.node.empty()) BSP_CHECK_OK(check_node(parsed.access, wish.node));
  BSP_TRY(const auto migration, screens::migration_for(job, wish, sets, std::nullopt, now()));
  json object;
  to_json(object, migration);
  BSP_TRY(const std::string out, kubectl.create(object));
  cli::print_lines({screens::printable(out.substr(0, out.find('\n')))});
  return waits ? follow(kubectl, migration.metadata.name) : cli::kDone;
}

Result<int> drain_plan(Words words) {
  std::string node;
  Access access;
  cli::Command command("kubectl bsp drain-plan",
                       "Say which ranks a drain of the node would move, where they could go, or why they can't.");
  command.argument("NODE", "name of the node", node).required();
  declare_access(command, access);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("NODE", node));
  Access everywhere = access;
  everywhere.name_space = "";
  const Kubectl all(everywhere);
  screens::ClusterObjects objects;
  BSP_TRY(const json nodes, all.get({"nodes"}));
  objects.nodes = items_of(nodes);
  BSP_TRY(const json pods,
          all.get({"pods", "--all-namespaces", "--field-selector=status.phase!=Succeeded,status.phase!=Failed"}));
  objects.pods = items_of(pods);
  BSP_TRY(const json jobs,
          access.name_space.empty() ? all.get({kJobs, "--all-namespaces"}) : Kubectl(access).get({kJobs}));
  for (const json& item : items_of(jobs)) {
    auto job = crds::bsp_job_from_json(item);
    const json& metadata = part_at(item, "metadata");
    if (job)
      objects.jobs.push_back(std::move(*job));
    else  // of a newer operator, perhaps; the other jobs are planned all the same
      cli::report_error(job.error().in(std::format("BSPJob {}/{} is left out", text_at(metadata, "namespace"),
                                                   text_at(metadata, "name"))),
                        "kubectl-bsp");
  }
  BSP_TRY(const auto lines, screens::drain_plan(node, objects));
  cli::print_lines(lines);
  return cli::kDone;
}

}  // namespace bsp::kubectl
