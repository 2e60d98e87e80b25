// get, describe and logs: the commands that only read.
#include <algorithm>
#include <cstdio>
#include <format>
#include <optional>

#include "base/json/fields.h"
#include "operator/cli/table.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/describe.h"
#include "operator/local/cli/place.h"
#include "operator/local/cli/resources.h"
#include "operator/local/cli/summary.h"
#include "operator/local/cli/view.h"
#include "operator/local/pod_logs.h"
#include "operator/screens/move.h"

namespace bsp::local {
namespace {

using kube::Object;
using std::chrono::milliseconds;

constexpr milliseconds kWatch{60'000};
constexpr milliseconds kFollow{200};  // logs are files, which the store doesn't watch

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Time now() { return SystemClock().now(); }

std::string text(const Object& object, const char* field) { return text_at(object, field); }

// Oldest first, as kubectl sorts a list of events.
void sort_by_time(std::vector<Object>& events) {
  std::ranges::stable_sort(events, {}, [](const Object& e) { return last_seen(e); });
}

// Until Ctrl-C: prints the objects, then every change in columns of the same widths.
Result<int> watch(Store& store, const Resource& resource, const std::string& name, Output output) {
  const bool wide = output == Output::kWide;
  const bool table_like = wide || output == Output::kTable;
  cli::Table table(header_of(resource, wide));
  std::string cursor;
  for (bool first = true;; first = false) {
    BSP_TRY(const auto events,
            store.wait({{resource.api_version, resource.kind}}, store.options().name_space, cursor, kWatch));
    std::vector<Object> objects;
    for (const auto& event : events)
      if (name.empty() || text_at(part_at(event.object, "metadata"), "name") == name) objects.push_back(event.object);
    if (table_like && first) {
      for (const Object& object : objects) table.add(row_of(resource, object, wide, now()));
      put(table.text());
    } else if (table_like) {
      for (const Object& object : objects) put(table.line(row_of(resource, object, wide, now())));
    } else {
      for (const Object& object : objects)
        put((output == Output::kYaml ? "---\n" : "") +
            print(resource, std::vector<Object>{object}, output, true, now()));
    }
  }
}

}  // namespace

Result<int> local_get(std::span<const std::string> words) {
  std::string kind = "bspjobs", name;
  Output output = Output::kTable;
  bool watches = false;
  Place place;
  cli::Command command("bsp-operator local get", "List objects, or print one.");
  command.argument("KIND", "bspjobs, rankmigrations, pods, nodes or events (default: bspjobs)", kind);
  command.argument("NAME", "of one object", name);
  command.option("-o,--output", "FORMAT", "table, wide, json, yaml or name (default: table)",
                 cli::one_of(output, {{"table", Output::kTable},
                                      {"wide", Output::kWide},
                                      {"json", Output::kJson},
                                      {"yaml", Output::kYaml},
                                      {"name", Output::kName}}));
  command.flag("-w,--watch", "print every change until Ctrl-C", watches);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  if (const auto slash = kind.find('/'); slash != std::string::npos && name.empty()) {  // pod/NAME
    name = kind.substr(slash + 1);
    kind.resize(slash);
  }
  BSP_TRY(const Resource* resource, resource_named(kind));
  BSP_TRY(const auto store, open_store(place));
  if (watches) return watch(*store, *resource, name, output);
  std::vector<Object> objects;
  const kube::Kind wanted{resource->api_version, resource->kind};
  if (!name.empty()) {
    BSP_TRY(Object object, store->get({wanted, store->options().name_space, name}));
    objects.push_back(std::move(object));
  } else {
    BSP_TRY(objects, store->list(wanted, store->options().name_space));
  }
  if (resource->singular == "event") sort_by_time(objects);
  if (objects.empty() && (output == Output::kTable || output == Output::kWide)) {
    std::fprintf(stderr, "No resources found in %s namespace.\n", store->options().name_space.c_str());
    return 0;
  }
  put(print(*resource, objects, output, !name.empty(), now()));
  return 0;
}

Result<int> local_describe(std::span<const std::string> words) {
  std::string kind, name;
  Place place;
  cli::Command command("bsp-operator local describe", "Print a BSPJob or a RankMigration for people.");
  command.argument("KIND", "bspjob or rankmigration", kind).required();
  command.argument("NAME", "of the object", name).required();
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const Resource* resource, resource_named(kind));
  if (resource->kind != kBspJob.kind && resource->kind != kRankMigration.kind)
    return fail(ErrorCode::kInvalid,
                std::format("only BSPJobs and RankMigrations have a description; see: bsp-operator local get {} {} "
                            "-o yaml",
                            resource->singular, name));
  BSP_TRY(const auto store, open_store(place));
  const std::string& name_space = store->options().name_space;
  BSP_TRY(const Object object, store->get({{resource->api_version, resource->kind}, name_space, name}));
  if (resource->kind == kRankMigration.kind) {
    BSP_TRY(const auto migration, crds::rank_migration_from_json(object));
    put(describe_migration(migration, now()));
    return 0;
  }
  BSP_TRY(const auto job, crds::bsp_job_from_json(object));
  BSP_TRY(auto events, store->list(kEvent, name_space));
  std::erase_if(events, [&](const Object& e) {
    const Object& about = part_at(e, "regarding");
    return text(about, "kind") != kBspJob.kind || text(about, "name") != job.metadata.name;
  });
  sort_by_time(events);
  put(describe_job(job,
                   job.status.last_decision ? decision_lines(*job.status.last_decision) : std::vector<std::string>{},
                   events, now()));
  return 0;
}

Result<int> local_logs(std::span<const std::string> words) {
  std::optional<std::uint32_t> rank;
  std::string name;
  bool follows = false;
  Place place;
  cli::Command command("bsp-operator local logs", "Print what a rank has written, in all its pods.");
  command.argument("RANK", "number of the rank", cli::number(rank)).required();
  command.text("--job", "NAME", "name of the job, if there are several", name);
  command.flag("-f,--follow", "print new output until the job ends", follows);
  declare_place(command, place);
  BSP_CHECK_OK(command.parse(words));
  BSP_TRY(const auto store, open_store(place));
  BSP_TRY(Object object, find_job(*store, name));
  RankLog log(*rank);
  std::string cursor;
  for (;;) {
    BSP_TRY(const auto job, crds::bsp_job_from_json(object));
    BSP_CHECK_OK(screens::check_rank(job, *rank));
    // Before the log is read, because it grows until then.
    BSP_TRY(const bool complete, has_all_output(*store, job, *rank, now()));
    put(log.next(rank_logs(store->directory() + "/logs", job, *rank), !follows || complete));
    if (!follows || complete) return 0;
    BSP_TRY(const auto events, store->wait({kBspJob}, store->options().name_space, cursor, kFollow));
    for (const auto& event : events) {
      if (text_at(part_at(event.object, "metadata"), "name") != job.metadata.name) continue;
      if (event.type == kube::EventType::kDeleted) return 0;
      object = event.object;
    }
  }
}

}  // namespace bsp::local
