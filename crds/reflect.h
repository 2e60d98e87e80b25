// JSON reader and writer for every struct that declares its fields (base/core/fields.h).
//
// Reading keeps the first error with its path. Writing omits empty strings, lists, maps and unset times and
// optionals, unless written_whole(Of<T>) is declared beside the struct. A function `Result<void> judge(T&)`
// beside a struct validates it after reading.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <format>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"
#include "base/core/ids.h"
#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "crds/meta.h"
#include "crds/nearest.h"

namespace bsp::crds {

template <NamedEnum E>
Result<E> enum_from(std::string_view text) {
  if (const auto value = enum_named<E>(text)) return *value;
  const auto& names = EnumNames<E>::names;
  return fail(ErrorCode::kInvalid, std::format("\"{}\" is not one of the allowed values{}", text,
                                               suggestion(text, {names.begin(), names.end()})));
}

}  // namespace bsp::crds

namespace bsp::reflect {

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
// A type that is stored in another form than it is used in: pack() and unpack() beside it convert between T and T::Packed.
// A stored T::Plain is read, too.
template <class T>
concept Packs = requires {
  typename T::Packed;
  typename T::Plain;
};

// --- Reading ---------------------------------------------------------------------------------------
struct Rules {
  bool strict = false;                   // an unknown field is an error
  bool cut = false;                      // what exceeds a field's `most` is truncated, else rejected
  std::uint64_t most_whole = INT64_MAX;  // a whole number: an API server keeps it as int64
};

// A place in the object, formatted only for an error.
struct Path {
  static constexpr std::size_t kNone = ~std::size_t{0};
  const Path* up = nullptr;
  std::string_view name = {};
  std::size_t index = kNone;

  [[nodiscard]] std::string text() const {
    std::string before = up ? up->text() : "";
    if (index != kNone) return std::format("{}[{}]", before, index);
    if (before.empty() || name.empty()) return before + std::string(name);
    return std::format("{}.{}", before, name);
  }
};

struct Problem {
  std::string message;  // empty: none yet
  void at(const Path& path, std::string_view what) {
    if (!message.empty()) return;
    const std::string where = path.text();
    message = std::format("{}: {}", where.empty() ? "object" : where, what);
  }
  explicit operator bool() const { return !message.empty(); }
};

std::string_view type_name(const json& j);  // "a string", "a list", …

class Reader {
 public:
  explicit Reader(Rules rules) : rules_(rules) {}
  [[nodiscard]] Problem& problem() { return problem_; }

  template <class T>
  void read(const json& j, T& out, const Path& path, const Field& field = {}) {
    if (problem_) return;
    if constexpr (std::same_as<T, json>) {
      if (!j.is_object() && !j.is_array()) return wrong(path, "an object", j);
      out = j;
    } else if constexpr (std::same_as<T, std::string>) {
      if (!j.is_string()) return wrong(path, "a string", j);
      out = j.get<std::string>();
      if (out.size() > field.most) too_long(out, path, field);
    } else if constexpr (std::same_as<T, bool>) {
      if (!j.is_boolean()) return wrong(path, "true or false", j);
      out = j.get<bool>();
    } else if constexpr (std::same_as<T, double>) {
      if (!j.is_number()) return wrong(path, "a number", j);
      if (!std::isfinite(j.get<double>())) return problem_.at(path, "must be a finite number");
      out = j.get<double>();
    } else if constexpr (std::integral<T>) {
      read_whole(j, out, path, field);
    } else if constexpr (kIsId<T>) {
      read_whole(j, out.value, path, field);
    } else if constexpr (NamedEnum<T>) {
      if (!j.is_string()) return wrong(path, "a string", j);
      if (auto value = crds::enum_from<T>(j.get_ref<const std::string&>()))
        out = *value;
      else
        problem_.at(path, value.error().message);
    } else if constexpr (std::same_as<T, Time>) {
      if (j.is_string()) out = from_rfc3339(j.get<std::string>());
      if (!j.is_string() || out == Time{}) return wrong(path, "a time such as 2026-11-21T04:05:06Z", j);
    } else if constexpr (std::same_as<T, crds::Quantity>) {
      if (!j.is_number_integer() && !j.is_string()) return wrong(path, "a quantity such as 512Mi", j);
      out.text = j.is_string() ? j.get<std::string>() : j.dump();
      if (auto value = crds::quantity_value(out.text); !value) problem_.at(path, value.error().message);
    } else if constexpr (std::same_as<T, TextMap>) {
      if (!j.is_object()) return wrong(path, "a map of strings", j);
      for (const auto& [key, value] : j.items()) read(value, out[key], Path{&path, key});
    } else if constexpr (Packs<T>) {
      read_packed(j, out, path, field);
    } else if constexpr (kIsVector<T>) {
      read_list(j, out, path, field);
    } else if constexpr (kIsOptional<T>) {
      read(j, out.emplace(), path, field);
    } else {
      static_assert(HasFields<T>);
      read_object(j, out, path);
    }
  }

 private:
  template <class T>
  struct FieldReader {
    Reader& reader;
    const json& object;
    T& out;
    const Path& path;
    std::vector<std::string_view> known = {};  // of a strict reader
    const char* missing = nullptr;

    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      if (reader.rules_.strict) known.push_back(name);
      if (reader.problem_) return;
      const auto it = object.find(name);
      // null means "not given", as in kubectl's input.
      if (it != object.end() && !it->is_null()) return reader.read(*it, out.*member, Path{&path, name}, field);
      if (field.required && !missing) missing = name;
    }
    void ignored(const char* name) { known.push_back(name); }
  };

  template <class T>
  void read_object(const json& j, T& out, const Path& path) {
    if (!j.is_object()) return wrong(path, "an object", j);
    FieldReader<T> fields{*this, j, out, path};
    fields_of(Of<T>{}, fields);
    // Unknown before missing: "rank: unknown, did you mean ranks?" explains why ranks is missing.
    if (rules_.strict) refuse_unknown(j, fields.known, path);
    if (fields.missing) problem_.at(Path{&path, fields.missing}, "is required");
    if constexpr (requires { judge(out); })
      if (!problem_)
        if (const auto good = judge(out); !good) problem_.at(path, good.error().message);
  }

  template <class T>
  void read_packed(const json& j, T& out, const Path& path, const Field& field) {
    if (T::is_plain(j)) return read(j, static_cast<typename T::Plain&>(out), path, field);
    typename T::Packed packed;
    read(j, packed, path, field);
    if (problem_) return;
    if (const auto good = unpack(packed, out); !good) problem_.at(path, good.error().message);
  }

  template <class T>
  void read_list(const json& j, std::vector<T>& out, const Path& path, const Field& field) {
    if (!j.is_array()) return wrong(path, "a list", j);
    if (j.size() > field.most) return problem_.at(path, std::format("has more than {} entries", field.most));
    out.resize(j.size());
    const Field entry{.most = field.most_each};
    for (std::size_t i = 0; i < j.size() && !problem_; ++i) read(j[i], out[i], Path{&path, "", i}, entry);
  }

  template <class T>
  void read_whole(const json& j, T& out, const Path& path, const Field& field) {
    constexpr auto kMost = std::uint64_t{std::numeric_limits<T>::max()};
    const auto most = std::min({kMost, rules_.most_whole, field.most});
    if (const auto number = whole_number<T>(j); number && (std::cmp_less_equal(*number, most) || rules_.cut)) {
      out = std::cmp_less_equal(*number, most) ? *number : static_cast<T>(most);
      return;
    }
    refuse_whole(j, path, std::is_unsigned_v<T>, std::numeric_limits<T>::min(), most);
  }

  void wrong(const Path& path, std::string_view expected, const json& j) {
    problem_.at(path, std::format("must be {}, not {}", expected, type_name(j)));
  }
  void too_long(std::string& text, const Path& path, const Field& field);
  void refuse_whole(const json& j, const Path& path, bool is_unsigned, std::int64_t least, std::uint64_t most);
  void refuse_unknown(const json& object, const std::vector<std::string_view>& known, const Path& path);

  Rules rules_;
  Problem problem_;
};

// `name` is what the path of an error begins with.
template <class T>
Result<T> read(const json& j, std::string_view name, Rules rules = {}, T from = {}) {
  Reader reader(rules);
  reader.read(j, from, Path{nullptr, name});
  if (reader.problem()) return fail(ErrorCode::kInvalid, reader.problem().message);
  return from;
}

// --- Writing ---------------------------------------------------------------------------------------
template <class T>
json write(const T& value);

template <class T>
bool is_empty(const T& member) {
  if constexpr (std::same_as<T, std::string> || std::same_as<T, TextMap> || kIsVector<T>)
    return member.empty();
  else if constexpr (Packs<T> && requires { member.empty(); })
    return member.empty();
  else if constexpr (std::same_as<T, json>)
    return member.is_null();
  else if constexpr (std::same_as<T, Time>)
    return member == Time{};
  else if constexpr (kIsOptional<T>)
    return !member;
  else
    return false;
}

template <class T>
bool is_left_out(const T& member, const Field& field, bool whole) {
  if constexpr (kIsOptional<T>)
    if (!member) return true;
  if constexpr (requires { member.is_unset(); })
    if (member.is_unset()) return true;
  if (field.required) return false;
  if constexpr (std::is_arithmetic_v<T>)
    return field.rare && member == T{};
  else
    return (field.rare || !whole) && is_empty(member);
}

template <class T>
json write(const T& value) {
  if constexpr (kIsId<T>) {
    return value.value;
  } else if constexpr (NamedEnum<T>) {
    return std::string(to_string(value));
  } else if constexpr (std::same_as<T, Time>) {
    return to_rfc3339(value);
  } else if constexpr (std::same_as<T, crds::Quantity>) {
    return value.text;
  } else if constexpr (Packs<T>) {
    return write(pack(value));
  } else if constexpr (kIsOptional<T>) {
    return write(*value);
  } else if constexpr (kIsVector<T>) {
    json list = json::array();
    for (const auto& item : value) list.push_back(write(item));
    return list;
  } else if constexpr (std::same_as<T, json> || std::same_as<T, std::string> || std::same_as<T, TextMap> ||
                       std::is_arithmetic_v<T>) {
    return value;
  } else {
    constexpr bool kWhole = requires { written_whole(Of<T>{}); };
    json object = json::object();
    visit_fields(value, [&](const char* name, const auto& member, const Field& field) {
      if (!is_left_out(member, field, kWhole)) object[name] = write(member);
    });
    return object;
  }
}

}  // namespace bsp::reflect

namespace bsp::crds {
namespace reflect = bsp::reflect;
}
