// checkpoint and checkpoints: a job's checkpoint sets.
#include <poll.h>

#include <cstdio>
#include <format>
#include <nlohmann/json.hpp>

#include "base/core/base64.h"
#include "base/json/fields.h"
#include "base/net/pki.h"
#include "crds/names.h"
#include "crds/sets/set_keys.h"
#include "operator/cli/exit_code.h"
#include "operator/kubectl/commands.h"
#include "operator/kubectl/kubectl.h"
#include "operator/screens/printable.h"
#include "operator/screens/sets.h"

namespace bsp::kubectl {
namespace {

using Words = std::span<const std::string>;

const std::string kJobsOfSets = std::format("bspjobs.{}", names::kGroup);

Result<crds::BspJob> job_of(const Kubectl& kubectl, const std::string& name) {
  BSP_TRY(const nlohmann::json object, kubectl.get({kJobsOfSets, name}));
  return crds::bsp_job_from_json(object).transform_error(
      [&](const Error& e) { return e.in(std::format("BSPJob {} as the cluster has it", name)); });
}

constexpr std::string_view kAuthority = "-authority";

// That of the operator of this cluster, which only administrators can read.
Result<std::string> seed_of_operator(Access access, const std::string& name_space) {
  access.name_space = name_space;
  std::vector<std::string> words{"secrets", "--selector=app.kubernetes.io/name=bsp-operator"};
  if (name_space.empty()) words.emplace_back("--all-namespaces");
  const auto found = Kubectl(access, true).get(words);
  if (!found)
    return std::unexpected(
        found.error().in("the seed of the sets' keys, which only administrators of the operator can read"));
  std::optional<std::string> seed;
  for (const nlohmann::json& secret : items_of(*found)) {
    if (!text_at(part_at(secret, "metadata"), "name").ends_with(kAuthority)) continue;
    const auto decoded = base64_decode(text_at(part_at(secret, "data"), "seed"));
    if (!decoded || decoded->size() != net::kSeedBytes) continue;
    if (seed)
      return fail(ErrorCode::kConflict,
                  "the cluster has several operators; name the namespace of the job's by --operator");
    seed = *decoded;
  }
  if (!seed)
    return fail(ErrorCode::kNotFound,
                "no operator's Secret …-authority holds a seed; name the namespace of the operator by --operator");
  return std::move(*seed);
}

Result<int> export_set(const crds::BspJob& job, std::optional<std::uint64_t> number, const Access& access,
                       const std::string& operators) {
  BSP_TRY(const auto set, screens::set_to_export(job, number));
  BSP_TRY(const std::string seed, seed_of_operator(access, operators));
  BSP_TRY(const std::string sets, net::derive_key(seed, crds::sets_of_job(job.metadata.uid)));
  BSP_TRY(const std::string key, net::derive_key(sets, crds::set_of_sets(set.id)));
  std::fputs(screens::export_manifest(job, set, key).c_str(), stdout);
  return cli::kDone;
}

}  // namespace

Result<int> checkpoint(Words words) {
  std::string name;
  bool waits = false;
  Access access;
  cli::Command command("kubectl bsp checkpoint", "Make a checkpoint set of a job now.");
  command.argument("JOB", "name of the BSPJob", name).required();
  command.flag("--wait", "wait until it is stored; exit status 0 if it is", waits);
  declare_access(command, access);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", name));
  const Kubectl kubectl(access);
  BSP_TRY(const crds::BspJob job, job_of(kubectl, name));
  BSP_TRY(const auto wanted, screens::want_set(job, SystemClock::now()));
  BSP_TRY(const std::string out, kubectl.annotate({kJobsOfSets, name}, names::kAnnotationCheckpoint, wanted.value));
  if (!waits) {
    std::fputs(screens::printable(out.substr(0, out.find('\n'))).append("\n").c_str(), stdout);
    return cli::kDone;
  }
  const Kubectl quiet(access, true);
  for (;;) {
    BSP_TRY(const crds::BspJob now, job_of(quiet, name));
    if (const auto outcome = screens::outcome_of(wanted, now)) {
      BSP_CHECK_OK(*outcome);
      std::puts((*outcome)->c_str());
      return cli::kDone;
    }
    ::poll(nullptr, 0, kPollMs);
  }
}

Result<int> checkpoints(Words words) {
  std::string name, operators;
  bool exports = false;
  std::optional<std::uint64_t> set;
  Access access;
  cli::Command command("kubectl bsp checkpoints", "List the checkpoint sets of a job, or export one.");
  command.argument("JOB", "name of the BSPJob", name).required();
  command.flag("--export", "print a set's key and description, for a job of another cluster or namespace", exports);
  command.option("--set", "NUMBER", "the set to export (default: the newest)", cli::number(set));
  command.text("--operator", "NAMESPACE", "of --export: that of the operator (default: the only one)", operators);
  declare_access(command, access);
  BSP_CHECK_OK(command.parse(words));
  BSP_CHECK_OK(check_name("JOB", name));
  BSP_TRY(const crds::BspJob job, job_of(Kubectl(access), name));
  if (exports) return export_set(job, set, access, operators);
  if (set || !operators.empty()) return command.wrong("--set and --operator belong to --export");
  std::fputs(screens::sets_table(job, SystemClock::now()).c_str(), stdout);
  return cli::kDone;
}

}  // namespace bsp::kubectl
