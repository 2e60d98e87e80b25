// What `local get` knows to list: kinds, their names on the command line, their columns.
//
// Those of BSPJob and RankMigration are the CRDs' additionalPrinterColumns, so that kubectl and `local get` agree;
// those of pods and events are kubectl's own.
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
  std::vector<Column> columns;  // the first one is NAME but for events
};

// kInvalid with the nearest name.
Result<const Resource*> resource_named(std::string_view name);

std::vector<std::string> header_of(const Resource& resource, bool wide);
std::vector<std::string> row_of(const Resource& resource, const nlohmann::json& object, bool wide, Time now);
// "bspjob.migbsp.io/NAME", "pod/NAME": -o name.
std::string full_name(const Resource& resource, const std::string& name);

// When an event happened, or its series for the last time; RFC 3339.
std::string last_seen(const nlohmann::json& event);

enum class Output { kTable, kWide, kJson, kYaml, kName };
Result<Output> output_named(std::string_view name);

// All of it as text. `single`: one object was asked for by name (JSON and YAML show it bare, not in a List).
std::string print(const Resource& resource, const std::vector<nlohmann::json>& objects, Output output, bool single,
                  Time now);

}  // namespace bsp::local
