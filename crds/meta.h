// What every object has (metav1 of Kubernetes).
//
// Times are points of CLOCK_REALTIME, written as RFC 3339 with microseconds; Time{} is "not set" and
// is left out of the JSON, as are empty strings, lists and maps.
#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/core/fields.h"

namespace bsp::crds {

using bsp::EnumNames;
using bsp::to_string;
using bsp::visit_fields;

// kInvalid with the list of the allowed names and, where there is one, the nearest.
template <NamedEnum E>
Result<E> enum_from(std::string_view text);

struct ObjectMeta {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;  // grows with every change of the spec
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> finalizers;
  nlohmann::json owner_references;  // as Kubernetes writes them; null: none
  Time creation_timestamp{};
  Time deletion_timestamp{};
};

enum class ConditionStatus { kFalse, kTrue, kUnknown };
constexpr auto names_of(Of<ConditionStatus>) { return std::to_array<std::string_view>({"False", "True", "Unknown"}); }

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::int64_t observed_generation = 0;
  Time last_transition_time{};
  std::string reason;   // CamelCase, for programs
  std::string message;  // a sentence, for people
};

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);

// Sets or adds a condition; last_transition_time moves only when `status` changes. True if anything
// changed, so that a second reconcile writes nothing.
bool set_condition(std::vector<Condition>& conditions, Condition next, Time now);

// A Kubernetes quantity such as "512Mi", "1.5Gi", "200m" or "2".
struct Quantity {
  std::string text;
  bool operator==(const Quantity&) const = default;
};
// In whole units (bytes for memory), rounded up, and capped as in Kubernetes (at 9·10¹⁸); kInvalid if the text is no quantity.
Result<std::uint64_t> quantity_value(std::string_view text);
// A duration such as "30s", "5m" or "1h30m", in seconds: as Kubernetes writes it, in whole seconds. kInvalid if it is none.
Result<std::uint64_t> duration_seconds(std::string_view text);
// In thousandths ("250m" -> 250, "0.25" -> 250): CPU.
Result<std::uint64_t> quantity_milli(std::string_view text);

}  // namespace bsp::crds
