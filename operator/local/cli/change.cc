// migrate and delete: the commands that change objects.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <format>
#include <optional>
#include <set>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/cli/live.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/one_job.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/resources.h"
#include "operator/local/files.h"
#include "operator/screens/move.h"

namespace bsp::local {
namespace {

using kube::Object;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

// `local run` restarts a killed operator within this time; then the operator deletes the job.
constexpr auto kRevival = 2s;
constexpr auto kDeletion = 90s;
constexpr milliseconds kPoll{100};

struct Places {
  std::set<std::string> sets, nodes;
};
Result<Places> places_for(Store& store, const crds::BspJob& job) {
  BSP_TRY(const auto nodes, store.list(kNode, store.options().name_space));
  Places places;
  for (const Object& node : nodes) {
    places.nodes.insert(text_at(part_at(node, "metadata"), "name"));
    places.sets.insert(text_at(part_at(part_at(node, "metadata"), "labels"), job.spec.sets.label));
  }
  places.sets.erase("");
  return places;
}

Result<int> follow(Store& store, const std::string& migration) {
  std::string cursor;
  const auto read = [&]() -> Result<crds::RankMigration> {
    BSP_CHECK_OK(store.wait({kRankMigration}, store.options().name_space, cursor, 1s));
    BSP_TRY(const Object object, store.get({kRankMigration, store.options().name_space, migration}));
    return crds::rank_migration_from_json(object);
  };
  return screens::follow(read, [](const std::string& line) { cli::print_lines({line}); });
}

// Locks the node if no operator has run it for kRevival, so that this process may remove its pods.
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

}  // namespace

Result<int> local_migrate(std::span<const std::string> words) {
  std::optional<std::uint32_t> rank;
  std::string name;
  screens::MoveWish wish;
  bool waits = false;
  Place place;
  cli::Command command("bsp-operator local migrate", "Move a rank: create a RankMigration.");
  command.argument("RANK", "number of the rank", cli::number(rank)).required();
  command.text("--to", "SET", "target Set", wish.set);
  command.text("--to-node", "NODE", "target node, instead of --to; '*': any other of the job's Sets", wish.node);
  command.text("--job", "NAME", "name of the job, if there are several", name);
  command.flag("--wait", "wait until the migration has ended; exit status 0 if it succeeded", waits);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  if (wish.set.empty() == wish.node.empty()) return command.wrong("give either --to or --to-node");
  BSP_TRY(const auto store, open_store(place));
  BSP_TRY(const Object object, find_job(*store, name));
  BSP_TRY(const auto job, crds::bsp_job_from_json(object));
  wish.rank = *rank;
  BSP_TRY(const Places places, places_for(*store, job));
  BSP_TRY(const auto migration, screens::migration_for(job, wish, places.sets, places.nodes, SystemClock::now()));
  Object request;
  to_json(request, migration);
  BSP_CHECK_OK(store->create(request));
  cli::print_lines({screens::created_line(migration)});
  return waits ? follow(*store, migration.metadata.name) : 0;
}

Result<int> local_delete(std::span<const std::string> words) {
  std::string kind, name;
  Place place;
  cli::Command command(
      "bsp-operator local delete",
      "Delete a job and wait until it is gone. Without an operator, remove its containers, networks and "
      "files itself.");
  command.argument("OBJECT", "NAME, KIND/NAME, or KIND with NAME after it; a bspjob (default) or a rankmigration", kind)
      .required();
  command.argument("NAME", "of the object, after its KIND", name);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  if (name.empty()) {  // KIND/NAME or NAME
    const auto slash = kind.find('/');
    name = slash == std::string::npos ? kind : kind.substr(slash + 1);
    kind = slash == std::string::npos ? "bspjob" : kind.substr(0, slash);
  }
  BSP_TRY(const Resource* resource, resource_named(kind));
  if (resource->kind == kNode.kind || resource->kind == kEvent.kind)
    return command.wrong(std::format("a {} can't be deleted by hand", resource->singular));
  BSP_TRY(auto store, open_store(place));
  const kube::Key key{{resource->api_version, resource->kind}, place.name_space, name};
  const bool job = resource->kind == kBspJob.kind;
  auto object = store->get(key);
  // The job's object may be gone while its containers remain.
  const bool remains = !object && object.error().code == ErrorCode::kNotFound && job &&
                       store->list(kBspJob, place.name_space).value_or(std::vector<Object>{}).empty();
  if (!object && !remains) return std::unexpected(object.error());
  if (!remains) BSP_CHECK_OK(store->remove(key, text_at(part_at(*object, "metadata"), "uid")));
  for (const auto deadline = steady_clock::now() + kDeletion; steady_clock::now() < deadline;) {
    if (auto now = store->get(key); !remains && !now && now.error().code == ErrorCode::kNotFound) {
      say_deleted(*resource, name);
      return 0;
    }
    if (job)
      if (auto lock = take_over(*store)) {
        BSP_CHECK_OK(remove_cluster(place.root, place.name_space));
        say_deleted(*resource, name);
        std::puts("No operator was running: removed its containers, networks and files.");
        return 0;
      }
    if (remains) return std::unexpected(object.error());
    ::poll(nullptr, 0, static_cast<int>(kPoll.count()));
  }
  return fail(ErrorCode::kTimeout,
              std::format("{} {} is still being deleted after 90 s; see: bsp-operator local describe {} {}",
                          resource->kind, name, resource->singular, name));
}

}  // namespace bsp::local
