#include "operator/reconcile/capacity/node_affinity.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json/fields.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

std::optional<std::int64_t> label_number(const json& text) {
  if (!text.is_string()) return std::nullopt;
  const std::string& digits = text.get_ref<const std::string&>();
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

bool are_texts(const json& values) {
  return values.is_null() || (values.is_array() && std::ranges::all_of(values, &json::is_string));
}

bool holds_for_labels(const json& requirement, const json& labels) {
  const std::string key = text_at(requirement, "key"), op = text_at(requirement, "operator");
  const json& values = part_at(requirement, "values");
  if (key.empty() || !are_texts(values)) return false;
  const json& label = part_at(labels, key);
  const bool there = label.is_string(), listed = there && std::ranges::find(values, label) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed && !values.empty();
  if (op == "Exists") return there && values.empty();
  if (op == "DoesNotExist") return !there && values.empty();
  if ((op != "Gt" && op != "Lt") || values.size() != 1) return false;
  const auto has = label_number(label), limit = label_number(values[0]);
  return has && limit && (op == "Gt" ? *has > *limit : *has < *limit);
}

// The API server admits this one field, and one value.
bool holds_for_name(const json& requirement, const std::string& name) {
  const std::string op = text_at(requirement, "operator");
  const json& values = part_at(requirement, "values");
  if (text_at(requirement, "key") != "metadata.name" || !values.is_array() || values.size() != 1 ||
      !values[0].is_string())
    return false;
  return op == "In" ? values[0] == name : op == "NotIn" && values[0] != name;
}

bool matches(const json& term, const json& labels, const std::string& name) {
  const json &of_labels = part_at(term, "matchExpressions"), &of_name = part_at(term, "matchFields");
  return has_requirements(term) &&
         std::ranges::all_of(of_labels, [&](const json& one) { return holds_for_labels(one, labels); }) &&
         std::ranges::all_of(of_name, [&](const json& one) { return holds_for_name(one, name); });
}

}  // namespace

const json& required_terms(const json& pod_spec) {
  const json& affinity = part_at(part_at(pod_spec, "affinity"), "nodeAffinity");
  return part_at(part_at(affinity, kRequiredAffinity), "nodeSelectorTerms");
}

bool has_requirements(const json& term) {
  return !part_at(term, "matchExpressions").empty() || !part_at(term, "matchFields").empty();
}

bool admits(const json& terms, const json& node) {
  if (!terms.is_array() || terms.empty()) return true;
  const json& metadata = part_at(node, "metadata");
  const std::string name = text_at(metadata, "name");
  return std::ranges::any_of(terms, [&](const json& term) { return matches(term, part_at(metadata, "labels"), name); });
}

}  // namespace bsp::reconcile
