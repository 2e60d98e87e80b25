#include "operator/local/cli/resources.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "crds/names.h"
#include "crds/nearest.h"
#include "operator/cli/table.h"
#include "operator/kinds.h"

namespace bsp::local {
namespace {

using cli::age;
using cli::Table;
using nlohmann::json;

// ".status.pause.totalMs" in an object; null if it isn't there.
const json* at_path(const json& object, std::string_view path) {
  const json* here = &object;
  while (!path.empty()) {
    path.remove_prefix(1);  // '.'
    const std::size_t end = std::min(path.find('.'), path.size());
    if (!here->is_object()) return nullptr;
    const auto it = here->find(path.substr(0, end));
    if (it == here->end()) return nullptr;
    here = &*it;
    path.remove_prefix(end);
  }
  return here->is_null() ? nullptr : here;
}

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return std::format("{:.4g}", value.get<double>());
  return value.dump();
}

std::string text_at_path(const json& object, std::string_view path) {
  const json* value = at_path(object, path);
  return value ? text_of(*value) : std::string();
}

std::string age_at(const json& object, std::string_view path, Time now) {
  return age(from_rfc3339(text_at_path(object, path)), now);
}

Column path_column(std::string header, std::string path, bool wide = false) {
  return {std::move(header), wide, [path](const json& object, Time) { return text_at_path(object, path); }};
}
Column age_column(std::string header, std::string path, bool wide = false) {
  return {std::move(header), wide, [path](const json& object, Time now) { return age_at(object, path, now); }};
}

// For labels and annotations, because their names contain dots.
std::string entry(const json& object, const char* map, std::string_view name) {
  return text_at(part_at(part_at(object, "metadata"), map), name);
}

Resource from_crd(const char* text) {
  const json crd = read_yaml(text).value().at(0);
  const json& spec = crd["spec"];
  const json& names = spec["names"];
  const json& version = spec["versions"][0];
  Resource r{std::format("{}/{}", spec["group"].get<std::string>(), version["name"].get<std::string>()),
             names["kind"],
             names["plural"],
             names["singular"],
             names["shortNames"],
             {}};
  r.columns.push_back(path_column("NAME", ".metadata.name"));
  for (const json& column : version["additionalPrinterColumns"]) {
    std::string header = column["name"];
    std::ranges::transform(header, header.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const bool wide = column.value("priority", 0) > 0;
    const std::string path = column["jsonPath"];
    r.columns.push_back(column["type"] == "date" ? age_column(header, path, wide) : path_column(header, path, wide));
  }
  return r;
}

std::string pod_ready(const json& pod, Time) {
  int ready = 0, all = 0;
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    if (const json* statuses = at_path(pod, std::string(".status.") + list))
      for (const json& status : *statuses) {
        // Finished init containers don't count; sidecars, which keep running, do.
        if (list[0] == 'i' && !flag_at(status, "started", false)) continue;
        ++all;
        if (flag_at(status, "ready", false)) ++ready;
      }
  if (all == 0)
    if (const json* containers = at_path(pod, ".spec.containers")) all = static_cast<int>(containers->size());
  return std::format("{}/{}", ready, all);
}

std::string pod_status(const json& pod, Time) {
  if (at_path(pod, ".metadata.deletionTimestamp")) return "Terminating";
  if (const std::string reason = text_at_path(pod, ".status.reason"); !reason.empty()) return reason;
  if (const json* statuses = at_path(pod, ".status.containerStatuses"))
    for (const json& status : *statuses)
      for (const char* state : {".state.waiting.reason", ".state.terminated.reason"})
        if (const std::string reason = text_at_path(status, state); !reason.empty()) return reason;
  const std::string phase = text_at_path(pod, ".status.phase");
  return phase.empty() ? "Pending" : phase;
}

std::string pod_restarts(const json& pod, Time) {
  long restarts = 0;
  for (const char* list : {".status.containerStatuses", ".status.initContainerStatuses"})
    if (const json* statuses = at_path(pod, list))
      for (const json& status : *statuses) restarts += count_at<long>(status, "restartCount");
  return std::to_string(restarts);
}

std::string node_status(const json& node, Time) {
  if (const json* conditions = at_path(node, ".status.conditions"))
    for (const json& condition : *conditions)
      if (text_at(condition, "type") == "Ready") return text_at(condition, "status") == "True" ? "Ready" : "NotReady";
  return "Unknown";
}

std::string event_object(const json& event, Time) {
  std::string kind = text_at_path(event, ".regarding.kind");
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::format("{}/{}", kind, text_at_path(event, ".regarding.name"));
}

// As in kubectl: "1s", or "1s (x3 over 2m)" for a series.
std::string event_age(const json& event, Time now) {
  const std::string first = age_at(event, ".eventTime", now);
  const json* count = at_path(event, ".series.count");
  if (!count || !count->is_number_integer()) return first;
  return std::format("{} (x{} over {})", age_at(event, ".series.lastObservedTime", now), count->get<int>(), first);
}

const std::vector<Resource>& resources() {
  static const std::vector<Resource> all{
      from_crd(kBspJobCrd),
      from_crd(kRankMigrationCrd),
      {"v1",
       "Pod",
       "pods",
       "pod",
       {"po"},
       {path_column("NAME", ".metadata.name"),
        {"READY", false, pod_ready},
        {"STATUS", false, pod_status},
        {"RESTARTS", false, pod_restarts},
        age_column("AGE", ".metadata.creationTimestamp"),
        path_column("IP", ".status.podIP", true),
        path_column("NODE", ".spec.nodeName", true)}},
      {"v1",
       "Node",
       "nodes",
       "node",
       {"no"},
       {path_column("NAME", ".metadata.name"),
        {"STATUS", false, node_status},
        {"SET", false, [](const json& node, Time) { return entry(node, "labels", names::kLabelSet); }},
        {"CPU", false, [](const json& node, Time) { return entry(node, "annotations", names::kAnnotationSpeed); }},
        age_column("AGE", ".metadata.creationTimestamp")}},
      {kEvent.api_version,
       kEvent.kind,
       "events",
       "event",
       {"ev"},
       {{"LAST SEEN", false, event_age},
        path_column("TYPE", ".type"),
        path_column("REASON", ".reason"),
        {"OBJECT", false, event_object},
        path_column("MESSAGE", ".note")}}};
  return all;
}

}  // namespace

std::string last_seen(const json& event) {
  const std::string again = text_at_path(event, ".series.lastObservedTime");
  return again.empty() ? text_at_path(event, ".eventTime") : again;
}

Result<const Resource*> resource_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Resource& r : resources()) {
    const std::string group = r.api_version.substr(0, r.api_version.find('/'));
    if (name == r.plural || name == r.singular || name == r.kind ||
        std::ranges::find(r.short_names, name) != r.short_names.end() || name == r.plural + "." + group ||
        name == r.singular + "." + group)
      return &r;
    known.push_back(r.plural);
  }
  return fail(ErrorCode::kInvalid, std::format("unknown kind \"{}\"{}", name, crds::suggestion(name, known)));
}

std::vector<std::string> header_of(const Resource& resource, bool wide) {
  std::vector<std::string> header;
  for (const Column& column : resource.columns)
    if (wide || !column.wide) header.push_back(column.header);
  return header;
}

std::vector<std::string> row_of(const Resource& resource, const json& object, bool wide, Time now) {
  std::vector<std::string> row;
  for (const Column& column : resource.columns)
    if (wide || !column.wide) row.push_back(column.cell(object, now));
  return row;
}

std::string full_name(const Resource& resource, const std::string& name) {
  const std::size_t slash = resource.api_version.find('/');
  if (slash == std::string::npos) return std::format("{}/{}", resource.singular, name);
  return std::format("{}.{}/{}", resource.singular, resource.api_version.substr(0, slash), name);
}

std::string print(const Resource& resource, const std::vector<json>& objects, Output output, bool single, Time now) {
  switch (output) {
    case Output::kJson:
    case Output::kYaml: {
      json value;
      if (single && objects.size() == 1)
        value = objects.front();
      else
        value = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}, {"metadata", {{"resourceVersion", ""}}}};
      return output == Output::kYaml ? write_yaml(value) : value.dump(4) + "\n";
    }
    case Output::kName: {
      std::string out;
      for (const json& object : objects) out += full_name(resource, text_at_path(object, ".metadata.name")) + "\n";
      return out;
    }
    case Output::kTable:
    case Output::kWide:
      break;
  }
  const bool wide = output == Output::kWide;
  Table table(header_of(resource, wide));
  for (const json& object : objects) table.add(row_of(resource, object, wide, now));
  return table.text();
}

}  // namespace bsp::local
