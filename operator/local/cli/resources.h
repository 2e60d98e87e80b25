// The kinds that `local get` lists, their names on the command line, and their columns.
//
// The columns of BSPJob and RankMigration are the CRDs' additionalPrinterColumns, so that kubectl and `local get` agree;
// those of pods and events are kubectl's.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/error.h"

namespace bsp::local {

extern const char* const kBspJobCrd;  // crds/bspjob.yaml
extern const char* const kRankMigrationCrd;

struct Column {
  std::string header;
  bool wide = false;  // only with -o wide
  std::function<std::string(const nlohmann::json& object, Time now)> cell;
};

struct Resource {
  std::string api_version;
  std::string kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<Column> columns;  // the first is NAME, except for events
};

// kInvalid with the nearest name.
Result<const Resource*> resource_named(std::string_view name);

std::vector<std::string> header_of(const Resource& resource, bool wide);
std::vector<std::string> row_of(const Resource& resource, const nlohmann::json& object, bool wide, Time now);
// "bspjob.migbsp.io/NAME" or "pod/NAME", for -o name.
std::string full_name(const Resource& resource, const std::string& name);

// When an event, or the last one of its series, happened; RFC 3339.
std::string last_seen(const nlohmann::json& event);

enum class Output { kTable, kWide, kJson, kYaml, kName };

// The objects as text. `single`: the user named one object, which JSON and YAML show without a List around it.
std::string print(const Resource& resource, const std::vector<nlohmann::json>& objects, Output output, bool single,
                  Time now);

}  // namespace bsp::local
