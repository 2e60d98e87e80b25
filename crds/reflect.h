// JSON in and out of the structs of fields.h.
//
// Reading collects the first error with its path; a strict reader refuses unknown fields (spec),
// a lenient one skips them (status and metadata, which other programs extend). Writing leaves out
// empty texts, lists, maps and unset times and optionals.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <format>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/json/fields.h"
#include "crds/fields.h"
#include "crds/nearest.h"

namespace bsp::crds {

template <ApiEnum E>
Result<E> enum_from(std::string_view text) {
  const auto& names = EnumNames<E>::names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<E>(i);
  return fail(ErrorCode::kInvalid, std::format("\"{}\" is not one of the allowed values{}", text,
                                               suggestion(text, {names.begin(), names.end()})));
}

namespace reflect {

using nlohmann::json;

template <class T>
inline constexpr bool kIsId = false;
template <class Tag, class Value>
inline constexpr bool kIsId<Id<Tag, Value>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
using TextMap = std::map<std::string, std::string>;

// --- Reading ---------------------------------------------------------------------------------------
struct Problem {
  std::string message;  // empty: none yet
  void at(const std::string& path, std::string_view what) {
    if (message.empty()) message = std::format("{}: {}", path.empty() ? "object" : path, what);
  }
  explicit operator bool() const { return !message.empty(); }
};

std::string_view type_name(const json& j);  // "a text", "a list", …

template <class T>
void read(const json& j, T& out, const std::string& path, bool strict, Problem& problem);

struct FieldReader {
  const json& object;
  const std::string& path;
  bool strict;
  Problem& problem;
  std::vector<std::string_view> known = {};
  std::vector<std::string_view> missing = {};

  template <class T>
  void operator()(std::string_view name, T& member) {
    known.push_back(name);
    if (problem) return;
    const auto it = object.find(name);
    // null means "not given", as in kubectl's input.
    if (it == object.end() || it->is_null()) return;
    read(*it, member, path.empty() ? std::string(name) : std::format("{}.{}", path, name), strict, problem);
  }
  template <class T>
  void required(std::string_view name, T& member) {
    missing.push_back(name);
    (*this)(name, member);
  }
  void ignored(std::string_view name) { known.push_back(name); }
  void finish() {
    if (problem) return;
    // Unknown before missing: "rank: unknown, did you mean ranks?" explains why ranks is missing.
    if (strict)
      for (const auto& [name, value] : object.items())
        if (std::ranges::find(known, name) == known.end())
          return problem.at(path.empty() ? name : std::format("{}.{}", path, name),
                            "unknown field" + suggestion_at(name));
    for (std::string_view name : missing)
      if (const auto it = object.find(name); it == object.end() || it->is_null())
        return problem.at(std::format("{}.{}", path, name), "required, but not given");
  }
  std::string suggestion_at(const std::string& name) const {
    const std::string near = nearest(name, known);
    if (near.empty()) return suggestion(name, known);
    return std::format("; did you mean {}{}{}?", path, path.empty() ? "" : ".", near);
  }
};

template <class T>
void read_integer(const json& j, T& out, const std::string& path, Problem& problem) {
  // An API server keeps whole numbers as int64.
  constexpr auto most = static_cast<T>(std::min<std::uint64_t>(std::numeric_limits<T>::max(), INT64_MAX));
  if (const auto number = whole_number<T>(j); number && *number <= most) {
    out = *number;
    return;
  }
  const double real = j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(real) || real != std::trunc(real))
    return problem.at(path, std::format("must be a whole number, not {}", type_name(j)));
  if (std::is_unsigned_v<T> && real < 0)
    return problem.at(path, std::format("must not be negative, but is {}", j.dump()));
  if (real < 0)
    return problem.at(path, std::format("{} is too small; the least is {}", j.dump(), std::numeric_limits<T>::min()));
  problem.at(path, std::format("{} is too large; the most is {}", j.dump(), most));
}

template <class T>
void read(const json& j, T& out, const std::string& path, bool strict, Problem& problem) {
  auto wrong = [&](std::string_view expected) {
    problem.at(path, std::format("must be {}, not {}", expected, type_name(j)));
  };
  if constexpr (std::same_as<T, json>) {
    if (!j.is_object() && !j.is_array()) return wrong("an object");
    out = j;
  } else if constexpr (std::same_as<T, std::string>) {
    if (!j.is_string()) return wrong("a text");
    out = j.get<std::string>();
  } else if constexpr (std::same_as<T, bool>) {
    if (!j.is_boolean()) return wrong("true or false");
    out = j.get<bool>();
  } else if constexpr (std::same_as<T, double>) {
    if (!j.is_number()) return wrong("a number");
    if (!std::isfinite(j.get<double>())) return problem.at(path, "must be a finite number");
    out = j.get<double>();
  } else if constexpr (std::integral<T>) {
    read_integer(j, out, path, problem);
  } else if constexpr (kIsId<T>) {
    read_integer(j, out.value, path, problem);
  } else if constexpr (ApiEnum<T>) {
    if (!j.is_string()) return wrong("a text");
    if (auto value = enum_from<T>(j.get<std::string>()))
      out = *value;
    else
      problem.at(path, value.error().message);
  } else if constexpr (std::same_as<T, Time>) {
    if (!j.is_string()) return wrong("a time such as 2026-11-21T04:05:06Z");
    out = from_rfc3339(j.get<std::string>());
    if (out == Time{}) return wrong("a time such as 2026-11-21T04:05:06Z");
  } else if constexpr (std::same_as<T, Quantity>) {
    if (j.is_number_integer())
      out.text = j.dump();
    else if (j.is_string())
      out.text = j.get<std::string>();
    else
      return wrong("a quantity such as 512Mi");
    if (auto value = quantity_value(out.text); !value) problem.at(path, value.error().message);
  } else if constexpr (std::same_as<T, wire::EpochPlan>) {
    if (auto plan = wire::epoch_plan_from_json(j))
      out = std::move(*plan);
    else
      problem.at(path, plan.error().message);
  } else if constexpr (std::same_as<T, TextMap>) {
    if (!j.is_object()) return wrong("a map of texts");
    for (const auto& [key, value] : j.items()) read(value, out[key], path + "." + key, strict, problem);
  } else if constexpr (kIsVector<T>) {
    if (!j.is_array()) return wrong("a list");
    out.resize(j.size());
    for (std::size_t i = 0; i < j.size() && !problem; ++i)
      read(j[i], out[i], std::format("{}[{}]", path, i), strict, problem);
  } else if constexpr (kIsOptional<T>) {
    read(j, out.emplace(), path, strict, problem);
  } else {
    if (!j.is_object()) return wrong("an object");
    FieldReader reader{j, path, strict, problem};
    visit_fields(out, reader);
    reader.finish();
  }
}

// --- Writing ---------------------------------------------------------------------------------------
template <class T>
json write(const T& value);

struct FieldWriter {
  json& object;
  void ignored(const char*) {}
  template <class T>
  void operator()(const char* name, const T& member) {
    if constexpr (std::same_as<T, std::string> || std::same_as<T, TextMap> || kIsVector<T>) {
      if (member.empty()) return;
    } else if constexpr (std::same_as<T, json>) {
      if (member.is_null()) return;
    } else if constexpr (std::same_as<T, Time>) {
      if (member == Time{}) return;
    } else if constexpr (kIsOptional<T>) {
      if (!member) return;
    }
    object[name] = write(member);
  }
  template <class T>
  void required(const char* name, const T& member) {
    object[name] = write(member);
  }
};

template <class T>
json write(const T& value) {
  if constexpr (kIsId<T>) {
    return value.value;
  } else if constexpr (ApiEnum<T>) {
    return std::string(to_string(value));
  } else if constexpr (std::same_as<T, Time>) {
    return to_rfc3339(value);
  } else if constexpr (std::same_as<T, Quantity>) {
    return value.text;
  } else if constexpr (kIsOptional<T>) {
    return write(*value);
  } else if constexpr (kIsVector<T>) {
    json list = json::array();
    for (const auto& item : value) list.push_back(write(item));
    return list;
  } else if constexpr (std::same_as<T, wire::EpochPlan>) {
    json j;
    wire::to_json(j, value);
    return j;
  } else if constexpr (std::same_as<T, json> || std::same_as<T, std::string> || std::same_as<T, TextMap> ||
                       std::is_arithmetic_v<T>) {
    return value;
  } else {
    json object = json::object();
    FieldWriter writer{object};
    visit_fields(value, writer);
    return object;
  }
}

}  // namespace reflect
}  // namespace bsp::crds
