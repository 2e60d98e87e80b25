// The CRDs and their C++ mirror say the same: every field of fields.h is in the schema with the same type, default,
// choices and need, and the schema has no other. Every bound of the schema is one of validate().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "base/json/yaml.h"
#include "crds/fields.h"
#include "crds/names.h"
#include "crds/reflect.h"

namespace bsp::crds {
namespace {

using nlohmann::json;

json crd(const std::string& name) {
  std::ifstream file(std::format("{}/crds/{}.yaml", BSP_SOURCE_DIR, name));
  std::ostringstream text;
  text << file.rdbuf();
  const auto documents = read_yaml(text.str());
  if (!documents) {
    ADD_FAILURE() << name << ".yaml:" << documents.error().line << ": " << documents.error().message;
    return {};
  }
  return documents->at(0);
}
const json& schema_of(const json& definition) { return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]; }

template <class T>
void compare(const json& schema, const std::string& path);

// See stored_status.h.
const std::set<std::string> kOnlyWritten{"status.internal", "status.summary", "status.lastDecision.why"};

void expect(const json& schema, const char* field, const json& wanted, const std::string& path) {
  EXPECT_EQ(schema.value(field, json()), wanted) << path << ": " << field;
}

// One struct against one schema of type object.
struct Fields {
  const json& schema;
  const std::string& path;
  std::set<std::string> names = {};
  std::set<std::string> required_names = {};

  template <class T>
  void operator()(const char* name, const T& member, const Field& field) {
    const std::string at = path + "." + name;
    names.insert(name);
    if (field.required) required_names.insert(name);
    const auto property = schema["properties"].find(name);
    if (property == schema["properties"].end()) {
      ADD_FAILURE() << at << ": is in fields.h and not in the CRD";
      return;
    }
    EXPECT_FALSE(property->value("description", "").empty()) << at << ": has no description";
    compare<T>(*property, at);
    // The operator fills in a default, so that an object holds only what the user wrote.
    expect(*property, "default", nullptr, at);
    if (const json filled = required_names.contains(name) ? json() : default_of(member, at); !filled.is_null()) {
      const std::string text = filled.is_string() ? filled.get<std::string>() : filled.dump();
      EXPECT_THAT(property->value("description", ""), testing::EndsWith(std::format("Default: {}.", text))) << at;
    }
  }
  void ignored(const char*) {}

  // What the operator fills in. A status is written whole, nothing is filled in.
  template <class T>
  static json default_of(const T& member, const std::string& at) {
    if (!at.starts_with("spec")) return nullptr;
    if constexpr (requires { member.is_unset(); }) return nullptr;  // what it then is depends on the rest of the object
    if constexpr (reflect::kIsOptional<T> || reflect::kIsVector<T> || std::same_as<T, json> || HasFields<T>)
      return nullptr;
    else if constexpr (std::same_as<T, std::string>)
      return member.empty() ? json() : json(member);
    else
      return json(reflect::write(member)) == json(0.0) ? json(0) : reflect::write(member);
  }
};

template <class T>
void compare(const json& schema, const std::string& path) {
  if constexpr (reflect::kIsOptional<T>) {
    compare<typename T::value_type>(schema, path);
  } else if constexpr (std::same_as<T, RanksPerPod>) {
    expect(schema, "x-kubernetes-int-or-string", true, path);
  } else if constexpr (reflect::Packs<T>) {
    compare<typename T::Packed>(schema, path);
  } else if constexpr (std::same_as<T, reflect::TextMap>) {
    expect(schema, "type", "object", path);
    expect(schema, "additionalProperties", {{"type", "string"}}, path);
  } else if constexpr (reflect::kIsVector<T>) {
    expect(schema, "type", "array", path);
    compare<typename T::value_type>(schema["items"], path + "[]");
  } else if constexpr (std::same_as<T, std::string>) {
    expect(schema, "type", "string", path);
    expect(schema, "enum", nullptr, path);
    expect(schema, "format", nullptr, path);
  } else if constexpr (std::same_as<T, bool>) {
    expect(schema, "type", "boolean", path);
  } else if constexpr (std::same_as<T, double>) {
    expect(schema, "type", "number", path);
  } else if constexpr (std::integral<T> || reflect::kIsId<T>) {
    expect(schema, "type", "integer", path);
    expect(schema, "format", "int64", path);
    if constexpr (reflect::kIsId<T> || std::is_unsigned_v<T>) {
      EXPECT_GE(schema.value("minimum", -1), 0) << path << ": must not be negative";
    }
  } else if constexpr (NamedEnum<T>) {
    expect(schema, "type", "string", path);
    expect(schema, "enum", json(EnumNames<T>::names), path);
  } else if constexpr (std::same_as<T, Time>) {
    expect(schema, "type", "string", path);
    expect(schema, "format", "date-time", path);
  } else if constexpr (std::same_as<T, Quantity>) {
    expect(schema, "x-kubernetes-int-or-string", true, path);
  } else if constexpr (std::same_as<T, json>) {
    expect(schema, "type", "object", path);
  } else {
    // What older operators stored as a list has no type, and nothing of it is pruned.
    const bool was_list = std::same_as<T, PackedPlaces> || std::same_as<T, PackedMembers>;
    expect(schema, "type", was_list ? json() : json("object"), path);
    expect(schema, "x-kubernetes-preserve-unknown-fields", was_list ? json(true) : json(), path);
    Fields fields{schema, path};
    const T value{};
    visit_fields(value, fields);
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, property] : properties.items())
      EXPECT_TRUE(fields.names.contains(name) || kOnlyWritten.contains(std::format("{}.{}", path, name)))
          << path << "." << name << ": is in the CRD and not in fields.h";
    if (!path.starts_with("status")) {
      EXPECT_EQ(schema.value("required", std::set<std::string>{}), fields.required_names) << path << ": required";
    }
  }
}

void compare_frame(const json& definition, std::string_view kind) {
  const json& spec = definition["spec"];
  EXPECT_EQ(spec["group"], names::kGroup);
  EXPECT_EQ(spec["versions"][0]["name"], names::kVersion);
  EXPECT_EQ(spec["names"]["kind"], kind);
  EXPECT_EQ(definition["metadata"]["name"],
            std::format("{}.{}", spec["names"]["plural"].get<std::string>(), names::kGroup));
  EXPECT_TRUE(spec["versions"][0]["subresources"].contains("status"));
  for (const json& column : spec["versions"][0]["additionalPrinterColumns"]) {
    const std::string path = column["jsonPath"];
    if (path.starts_with(".metadata")) continue;
    const json* here = &schema_of(definition);
    std::istringstream parts(path.substr(1));
    for (std::string part; std::getline(parts, part, '.');) {
      ASSERT_TRUE((*here)["properties"].contains(part)) << path << ": no such field";
      here = &(*here)["properties"][part];
    }
    const bool is_time = here->value("format", "") == "date-time";  // shown as an age
    EXPECT_EQ(column["type"], is_time ? "date" : here->value("type", "")) << path;
  }
}

TEST(Mirror, BspJob) {
  const json definition = crd("bspjob");
  compare_frame(definition, names::kBspJobKind);
  compare<BspJobSpec>(schema_of(definition)["properties"]["spec"], "spec");
  compare<BspJobStatus>(schema_of(definition)["properties"]["status"], "status");
}

TEST(Mirror, RankMigration) {
  const json definition = crd("rankmigration");
  compare_frame(definition, names::kRankMigrationKind);
  compare<RankMigrationSpec>(schema_of(definition)["properties"]["spec"], "spec");
  compare<RankMigrationStatus>(schema_of(definition)["properties"]["status"], "status");
}

// Values that the schema refuses, by path. Those of CEL rules are written here; a rule without one fails the test.
struct Refused {
  std::string path;
  json value;
};
const std::map<std::string, std::vector<json>> kAgainstRules{
    {"/spec/rescheduling/d", {0, 1, 1.5, -1}},
    {"/spec/rescheduling/x", {0, 1.1}},
    {"/spec/rescheduling/minGain", {-0.1, 1}},
    {"/spec/objective",
     {{{"type", "Deadline"}}, {{"type", "Price"}, {"deadline", "2h"}}, {{"type", "Time"}, {"deadline", "2h"}}}},
    {"/spec/objective/deadline", {"5", "1d", "0s", "5m30", "-5m", "tomorrow"}},
    {"/spec/superstep/call", {"Barrier", "MPI_Barier", "MPI_Ibarrier"}},
    {"/spec/superstep", {{{"call", "Auto"}, {"stride", 2}}}},
    {"/spec/ranksPerPod", {0, 257, -1, "auto", "", "4x"}},
    {"/spec/checkpoint/sizeLimit", {"not a size", "-1Gi", "0", 0, "1 Gi"}},
    {"/spec/checkpoint/interval",
     {"", "5", "m", "5m30", "0s", "30s5m", "-5m", "1d", "5 m", "1h1h", "9999999999h", "auto", "Auto1m"}},
    {"/spec/checkpoint/grace",
     {"", "5", "m", "5m30", "30s5m", "-5m", "1d", "5 m", "1h1h", "9999999999h", "auto", "Auto1m"}},
    {"/spec/checkpoint/storage",
     {json::object(),
      {{"hostPath", {{"path", "/a"}}}, {"persistentVolumeClaim", {{"claimName", "a"}}}},
      {{"hostPath", {{"path", "/a"}}},
       {"s3", {{"endpoint", "http://a"}, {"bucket", "abc"}, {"credentialsSecret", "keys"}}}}}},
    {"/spec/sets/label", {"", "no label", "/set", "Migbsp.io/set", "migbsp.io/", "a/b/c", "-set"}},
    {"/spec/template/spec/initContainers",
     {json::array({{{"name", "sidecar"}, {"image", "i"}}}), json::array({{{"name", "bsp-user"}, {"image", "i"}}})}},
    {"/spec/template/spec/volumes",
     {json::array({{{"name", "bsp-run"}}}), json::array({{{"name", "bsp-tls"}}}), json::array({{{"name", "bsp-sets"}}}),
      json::array({{{"name", "bsp-set-key"}}})}},
    {"/spec/restoreFrom",
     {json::object(),
      {{"job", "a"}, {"exported", "x"}, {"keySecret", "k"}},
      {{"job", "a"}, {"keySecret", "k"}},
      {{"exported", "x"}},
      {{"exported", "x"}, {"keySecret", "k"}, {"set", 1}},
      {{"exported", "x"}, {"keySecret", "k"}, {"namespace", "a"}}}},
    {"/spec/template/spec/nodeName", {"node-1"}},
    {"/spec/carryPaths", {{"relative"}, {"/with:colon"}}},
    {"/spec/sets/names", {{"a", "a"}}},
    {"/spec/template/spec/containers",
     {json::array({{{"name", "other"}, {"image", "i"}}}),
      json::array({{{"name", "app"}, {"image", "i"}}, {{"name", "app"}, {"image", "i"}}}),
      json::array({{{"name", "app"}, {"image", "i"}}, {{"name", "sidecar"}, {"image", "i"}}})}}};

void collect(const json& schema, const std::string& path, std::vector<Refused>& out) {
  if (schema.contains("minimum")) out.push_back({path, schema["minimum"].get<double>() < 1 ? json(-1) : json(0)});
  if (schema.contains("maximum")) out.push_back({path, schema["maximum"].get<double>() + 0.5});
  if (schema.contains("minLength") && schema["type"] == "string") out.push_back({path, ""});
  if (schema.contains("minItems")) out.push_back({path, json::array()});
  if (schema.contains("enum")) out.push_back({path, "NoSuchValue"});
  if (schema.contains("pattern")) out.push_back({path, "not a size"});
  if (schema.contains("x-kubernetes-validations") && path != "/spec") {
    const auto values = kAgainstRules.find(path);
    ASSERT_NE(values, kAgainstRules.end()) << path << ": has a rule; add a value that it refuses";
    for (const json& value : values->second) out.push_back({path, value});
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) collect(property, path + "/" + name, out);
}

TEST(Mirror, WhatTheSchemaRefusesTheMirrorRefuses) {
  const json good = {
      {"apiVersion", names::kApiVersion},
      {"kind", names::kBspJobKind},
      {"metadata", {{"name", "a"}}},
      {"spec", {{"ranks", 2}, {"template", {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}}}}}};
  ASSERT_TRUE(bsp_job_from_json(good).and_then([](const BspJob& job) { return validate(job.spec); }));
  std::vector<Refused> refused;
  const json definition = crd("bspjob");
  collect(schema_of(definition)["properties"]["spec"], "/spec", refused);
  EXPECT_GE(refused.size(), 30u);
  for (const Refused& r : refused) {
    json bad = good;
    bad[json::json_pointer(r.path)] = r.value;
    const auto answer = bsp_job_from_json(bad).and_then([](const BspJob& job) { return validate(job.spec); });
    EXPECT_FALSE(answer) << r.path << " = " << r.value << " is refused by the CRD and taken by the mirror";
  }
}

// A message with a comma that isn't quoted is split there, and the API server takes the rest for a field.
void check_rules(const json& part, const std::string& path) {
  static const std::set<std::string> known{"rule",   "message",   "messageExpression",
                                           "reason", "fieldPath", "optionalOldSelf"};
  for (const json& rule : part.is_object() ? part.value("x-kubernetes-validations", json::array()) : json::array()) {
    for (const auto& [key, value] : rule.items())
      EXPECT_TRUE(known.contains(key)) << path << " has a rule with " << key;
  }
  if (part.is_structured())
    for (const auto& [name, child] : part.items()) check_rules(child, path + "/" + name);
}

TEST(Mirror, RulesHaveOnlyKnownFields) {
  for (const char* const kind : {"bspjob", "rankmigration"}) check_rules(crd(kind), kind);
}

// The paths of the schema's integers, by what is the most that each may be; std::nullopt: no limit.
void integers(const json& schema, const std::string& path, std::map<std::string, std::optional<double>>& out) {
  if (schema.value("type", "") == "integer")
    out[path] = schema.contains("maximum") ? std::optional(schema["maximum"].get<double>()) : std::nullopt;
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, property] : properties.items()) integers(property, path + "/" + name, out);
}

// Otherwise the API server would store a job that the operator can't read.
// Rules of spec that compare its parts.
TEST(Mirror, AnObjectiveNeedsWhatItGoesBy) {
  json job = {
      {"apiVersion", names::kApiVersion},
      {"kind", names::kBspJobKind},
      {"metadata", {{"name", "a"}}},
      {"spec", {{"ranks", 2}, {"template", {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}}}}}};
  const auto answer = [&](const char* objective, const char* rescheduling) {
    job["spec"]["objective"] = json::parse(objective);
    job["spec"]["rescheduling"] = json::parse(rescheduling);
    const auto good = bsp_job_from_json(job).and_then([](const BspJob& read) { return validate(read.spec); });
    return good ? std::string() : good.error().message;
  };
  EXPECT_EQ(answer(R"({"deadline": "2h"})", R"({"expectedSupersteps": 100})"), "");
  EXPECT_EQ(answer(R"({"type": "Price", "maxSlowdown": 0})", "{}"), "");
  EXPECT_EQ(answer("{}", R"({"heuristic": "Top"})"), "");
  EXPECT_TRUE(answer(R"({"deadline": "2h"})", "{}").starts_with("spec.rescheduling.expectedSupersteps: is required"));
  EXPECT_TRUE(
      answer(R"({"type": "Price"})", R"({"heuristic": "Top"})").starts_with("spec.rescheduling.heuristic: must be"));
  EXPECT_TRUE(answer(R"({"deadline": "2h"})", R"({"expectedSupersteps": 9, "horizon": "Superstep"})")
                  .starts_with("spec.rescheduling.horizon: must be"));
  EXPECT_TRUE(
      answer(R"({"type": "Price", "maxSlowdown": -1})", "{}").starts_with("spec.objective.maxSlowdown: must be"));
  EXPECT_TRUE(answer(R"({"type": "Cheap"})", "{}").starts_with("spec.objective.type: "));
  EXPECT_TRUE(answer(R"({"dedline": "2h"})", "{}").contains("deadline"));
}

TEST(Mirror, WhatTheSchemaTakesOfIntegersTheMirrorTakes) {
  std::map<std::string, std::optional<double>> most;
  integers(schema_of(crd("bspjob"))["properties"]["spec"], "/spec", most);
  EXPECT_GE(most.size(), 15u);
  for (const auto& [path, limit] : most) {
    if (path == "/spec/ranks") continue;  // the job's other fields go with it
    json job = {{"apiVersion", names::kApiVersion},
                {"kind", names::kBspJobKind},
                {"metadata", {{"name", "a"}}},
                {"spec",
                 {{"ranks", 2},
                  {"restoreFrom", {{"job", "b"}}},
                  {"template", {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}}}}}};
    const auto value = static_cast<std::int64_t>(limit.value_or(4'294'967'296.0));
    job[json::json_pointer(path)] = value;
    const auto read = bsp_job_from_json(job);
    EXPECT_TRUE(read) << path << " = " << value << ": " << read.error().message;
  }
}

}  // namespace
}  // namespace bsp::crds
