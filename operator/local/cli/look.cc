// get, describe, logs: looking without touching.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <format>

#include "base/json/fields.h"
#include "operator/local/cli/args.h"
#include "operator/local/cli/commands.h"
#include "operator/local/cli/describe.h"
#include "operator/local/cli/resources.h"
#include "operator/local/cli/summary.h"
#include "operator/local/cli/table.h"
#include "operator/local/cli/view.h"

namespace bsp::local {
namespace {

using kube::Object;
using std::chrono::milliseconds;

constexpr const char* kGetUsage =
    "usage: bsp-operator local get [bspjobs|rankmigrations|pods|nodes|events] [NAME] [-n NAMESPACE]\n"
    "                              [-o table|wide|json|yaml|name] [-w]";
constexpr const char* kDescribeUsage = "usage: bsp-operator local describe bspjob|rankmigration NAME [-n NAMESPACE]";
constexpr const char* kLogsUsage = "usage: bsp-operator local logs RANK [--job NAME] [-f] [-n NAMESPACE]";
constexpr milliseconds kWatch{60'000};
constexpr milliseconds kFollow{200};  // logs are files, whose growth no watch tells

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Time now() { return SystemClock().now(); }

std::string text(const Object& object, const char* field) { return text_at(object, field); }

// Oldest first, as kubectl sorts events that are looked at for themselves.
void sort_by_time(std::vector<Object>& events) {
  std::ranges::stable_sort(events, {}, [](const Object& e) { return last_seen(e); });
}

// Until Ctrl-C: what is there, then every change in the columns' first widths.
Result<int> watch(Store& store, const Resource& resource, const std::string& name, Output output) {
  const bool wide = output == Output::kWide;
  const bool table_like = wide || output == Output::kTable;
  Table table(header_of(resource, wide));
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

Result<int> get(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_args(words, {kGetUsage, {{"-o", "output"}}, {{"-w", "watch"}}}));
  if (args.words.size() > 2) return fail(ErrorCode::kInvalid, kGetUsage);
  std::string kind = args.words.empty() ? "bspjobs" : args.words[0];
  std::string name = args.words.size() == 2 ? args.words[1] : "";
  if (const auto slash = kind.find('/'); slash != std::string::npos && name.empty()) {  // pod/NAME
    name = kind.substr(slash + 1);
    kind.resize(slash);
  }
  BSP_TRY(const Resource* resource, resource_named(kind));
  BSP_TRY(const Output output, output_named(args.get("output", "table")));
  BSP_TRY(const auto store, open_store(args));
  if (args.has("watch")) return watch(*store, *resource, name, output);
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

Result<int> describe(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_args(words, {kDescribeUsage}));
  if (args.words.size() != 2) return fail(ErrorCode::kInvalid, kDescribeUsage);
  BSP_TRY(const Resource* resource, resource_named(args.words[0]));
  if (resource->kind != kBspJob.kind && resource->kind != kRankMigration.kind)
    return fail(ErrorCode::kInvalid,
                std::format("only BSPJobs and RankMigrations are described; see: bsp-operator local get {} {} "
                            "-o yaml",
                            resource->singular, args.words[1]));
  BSP_TRY(const auto store, open_store(args));
  const std::string& name_space = store->options().name_space;
  BSP_TRY(const Object object, store->get({{resource->api_version, resource->kind}, name_space, args.words[1]}));
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

Result<int> logs(std::span<const std::string> words) {
  BSP_TRY(const Args args, parse_args(words, {kLogsUsage, {{"--job", "job"}}, {{"-f", "follow"}}}));
  if (args.words.size() != 1) return fail(ErrorCode::kInvalid, kLogsUsage);
  std::uint32_t rank = 0;
  const std::string& word = args.words[0];
  if (const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
      error != std::errc{} || end != word.data() + word.size())
    return fail(ErrorCode::kInvalid, std::format("\"{}\" is not a rank's number\n{}", word, kLogsUsage));
  BSP_TRY(const auto store, open_store(args));
  BSP_TRY(Object object, find_job(*store, args.get("job")));
  std::size_t shown = 0;
  std::string cursor;
  for (;;) {
    BSP_TRY(const auto job, crds::bsp_job_from_json(object));
    if (rank >= job.spec.ranks)
      return fail(ErrorCode::kInvalid, std::format("job {} has the ranks 0 to {}, and no rank {}", job.metadata.name,
                                                   job.spec.ranks - 1, rank));
    const std::string output = rank_output(store->directory() + "/logs", job, rank);
    if (output.size() > shown) put(output.substr(shown));
    shown = std::max(shown, output.size());
    if (!args.has("follow") || crds::is_finished(job.status.phase)) return 0;
    BSP_TRY(const auto events, store->wait({kBspJob}, store->options().name_space, cursor, kFollow));
    for (const auto& event : events) {
      if (text_at(part_at(event.object, "metadata"), "name") != job.metadata.name) continue;
      if (event.type == kube::EventType::kDeleted) return 0;
      object = event.object;
    }
  }
}

}  // namespace

int local_get(std::span<const std::string> args) {
  const auto status = get(args);
  return status ? *status : told(status.error());
}
int local_describe(std::span<const std::string> args) {
  const auto status = describe(args);
  return status ? *status : told(status.error());
}
int local_logs(std::span<const std::string> args) {
  const auto status = logs(args);
  return status ? *status : told(status.error());
}

}  // namespace bsp::local
