// migrate and delete: what a user changes.
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <format>
#include <set>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/nearest.h"
#include "crds/rankmigration.h"
#include "operator/local/cli/args.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/resources.h"
#include "operator/local/cli/run.h"
#include "operator/local/files.h"

namespace bsp::local {
namespace {

using kube::Object;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr const char* kMigrateUsage =
    "usage: bsp-operator local migrate RANK --to SET|--to-node NODE [--job NAME] [--wait] [-n NAMESPACE]";
constexpr const char* kDeleteUsage = "usage: bsp-operator local delete [bspjob|rankmigration] NAME [-n NAMESPACE]";
// A supervisor starts a killed operator again within this time; then it is the operator that deletes.
constexpr auto kRevival = 2s;
constexpr auto kDeletion = 90s;
constexpr milliseconds kPoll{100};

// The name must be one of `known`.
Result<void> check_known(const char* what, const std::string& name, const std::set<std::string>& known) {
  if (known.contains(name)) return {};
  return fail(ErrorCode::kInvalid,
              std::format("there is no {} {}{}", what, name, crds::suggestion(name, {known.begin(), known.end()})));
}

Result<void> check_target(Store& store, const crds::BspJob& job, const Args& args) {
  BSP_TRY(const auto nodes, store.list(kNode, store.options().name_space));
  std::set<std::string> sets, names;
  for (const Object& node : nodes) {
    names.insert(text_at(part_at(node, "metadata"), "name"));
    sets.insert(text_at(part_at(part_at(node, "metadata"), "labels"), job.spec.sets.label));
  }
  sets.erase("");
  if (args.has("to")) return check_known("Set", args.get("to"), sets);
  return check_known("node", args.get("to-node"), names);
}

// Prints each phase as it begins. 0 if the move succeeds.
Result<int> follow(Store& store, const Object& created) {
  const std::string name = text_at(part_at(created, "metadata"), "name");
  std::string cursor;
  std::string shown;
  for (;;) {
    BSP_TRY(const auto events, store.wait({kRankMigration}, store.options().name_space, cursor, 1s));
    for (const auto& event : events) {
      if (text_at(part_at(event.object, "metadata"), "name") != name) continue;
      if (event.type == kube::EventType::kDeleted)
        return fail(ErrorCode::kNotFound, std::format("{} was deleted", name));
      BSP_TRY(const auto migration, crds::rank_migration_from_json(event.object));
      const auto& s = migration.status;
      if (const std::string phase(crds::to_string(s.phase)); phase != shown) {
        std::printf("%s%s%s\n", phase.c_str(), s.message.empty() ? "" : ": ", s.message.c_str());
        std::fflush(stdout);
        shown = phase;
      }
      if (crds::is_finished(s.phase)) return s.phase == crds::MigrationPhase::kSucceeded ? 0 : 1;
    }
  }
}

Result<int> migrate(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_args(words, {kMigrateUsage,
                                              {{"--to", "to"}, {"--to-node", "to-node"}, {"--job", "job"}},
                                              {{"--wait", "wait"}}}));
  if (args.words.size() != 1 || args.has("to") == args.has("to-node")) return fail(ErrorCode::kInvalid, kMigrateUsage);
  std::uint32_t rank = 0;
  const std::string& word = args.words[0];
  if (const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
      error != std::errc{} || end != word.data() + word.size())
    return fail(ErrorCode::kInvalid, std::format("\"{}\" is not a rank's number\n{}", word, kMigrateUsage));
  BSP_TRY(const auto store, open_store(args));
  BSP_TRY(const Object object, find_job(*store, args.get("job")));
  BSP_TRY(const auto job, crds::bsp_job_from_json(object));
  if (rank >= job.spec.ranks)
    return fail(ErrorCode::kInvalid, std::format("job {} has the ranks 0 to {}, and no rank {}", job.metadata.name,
                                                 job.spec.ranks - 1, rank));
  if (crds::is_finished(job.status.phase))
    return fail(ErrorCode::kRefused, std::format("job {} has ended ({}); its ranks move no more", job.metadata.name,
                                                 crds::to_string(job.status.phase)));
  BSP_CHECK_OK(check_target(*store, job, args));
  if (rank < job.status.ranks.size() && args.has("to") && job.status.ranks[rank].set == args.get("to"))
    return fail(ErrorCode::kRefused, std::format("rank {} is in Set {} already", rank, args.get("to")));
  crds::RankMigration migration;
  // The time makes the name new; a rank may move many times.
  const auto ms = std::chrono::duration_cast<milliseconds>(SystemClock().now().time_since_epoch()).count();
  migration.metadata.name = std::format("{}-r{}-{:x}", job.metadata.name.substr(0, 40), rank, ms);
  migration.metadata.name_space = store->options().name_space;
  migration.metadata.labels[std::string(names::kLabelJob)] = job.metadata.name;
  migration.spec.job = job.metadata.name;
  migration.spec.rank = RankId{rank};
  migration.spec.target_set = args.get("to");
  migration.spec.target_node = args.get("to-node");
  Object request;
  to_json(request, migration);
  BSP_TRY(const Object created, store->create(request));
  std::printf("%s\n", std::format("rankmigration.{}/{} created", names::kGroup, migration.metadata.name).c_str());
  std::fflush(stdout);
  return args.has("wait") ? follow(*store, created) : 0;
}

// Nobody runs the pods, nor will soon: this process may. The lock keeps it so while it is held.
Result<Fd> take_over(const Store& store) {
  const auto deadline = steady_clock::now() + kRevival;
  for (;;) {
    auto lock = try_lock_file(store.directory() + "/.node.lock");
    if (!lock) return lock;
    if (steady_clock::now() >= deadline) return lock;
    lock->reset();
    ::poll(nullptr, 0, static_cast<int>(kPoll.count()));
  }
}

void say_deleted(const Resource& resource, const std::string& name) {
  std::printf("%s \"%s\" deleted\n", full_name(resource, "").substr(0, full_name(resource, "").size() - 1).c_str(),
              name.c_str());
}

Result<int> delete_it(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_args(words, {kDeleteUsage}));
  std::vector<std::string> named = args.words;
  if (named.size() == 1)  // bspjob/NAME or NAME
    if (const auto slash = named[0].find('/'); slash != std::string::npos)
      named = {named[0].substr(0, slash), named[0].substr(slash + 1)};
  if (named.size() == 1) named.insert(named.begin(), "bspjob");
  if (named.size() != 2) return fail(ErrorCode::kInvalid, kDeleteUsage);
  BSP_TRY(const Resource* resource, resource_named(named[0]));
  if (resource->kind == kNode.kind || resource->kind == kEvent.kind)
    return fail(ErrorCode::kInvalid, std::format("a {} is not deleted by hand\n{}", resource->singular, kDeleteUsage));
  BSP_TRY(auto store, open_store(args));
  const std::string root = store->options().root, name_space = store->options().name_space;
  const kube::Key key{{resource->api_version, resource->kind}, name_space, named[1]};
  const bool job = resource->kind == kBspJob.kind;
  auto object = store->get(key);
  // What is left of a job whose object is gone already is the job's still.
  const bool remains = !object && object.error().code == ErrorCode::kNotFound && job &&
                       store->list(kBspJob, name_space).value_or(std::vector<Object>{}).empty();
  if (!object && !remains) return std::unexpected(object.error());
  if (!remains) BSP_CHECK_OK(store->remove(key, text_at(part_at(*object, "metadata"), "uid")));
  for (const auto deadline = steady_clock::now() + kDeletion; steady_clock::now() < deadline;) {
    if (auto now = store->get(key); !remains && !now && now.error().code == ErrorCode::kNotFound) {
      say_deleted(*resource, named[1]);
      return 0;
    }
    if (job)
      if (auto lock = take_over(*store)) {
        BSP_CHECK_OK(remove_cluster(root, name_space));
        say_deleted(*resource, named[1]);
        std::puts("No operator was running: removed its containers, networks and files.");
        return 0;
      }
    if (remains) return std::unexpected(object.error());
    ::poll(nullptr, 0, static_cast<int>(kPoll.count()));
  }
  return fail(ErrorCode::kTimeout,
              std::format("{} {} is still being deleted after 90 s; see: bsp-operator local describe {} {}",
                          resource->kind, named[1], resource->singular, named[1]));
}

}  // namespace

int local_migrate(std::span<const std::string> args) {
  const auto status = migrate(args);
  return status ? *status : told(status.error());
}
int local_delete(std::span<const std::string> args) {
  const auto status = delete_it(args);
  return status ? *status : told(status.error());
}

}  // namespace bsp::local
