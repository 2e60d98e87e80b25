// Declares a struct's fields once, as names and members.
//
//   struct Armed {
//     std::uint64_t completed = 0;
//     bool late = false;
//   };
//   template <class V>
//   constexpr void fields_of(Of<Armed>, V&& v) {
//     v("completed", &Armed::completed, kRequired);
//     v("late", &Armed::late);
//   }
//
// The declaration goes beside the struct, in its namespace. Everything that crosses a process boundary uses it: JSON
// (crds/reflect.h), the packets of bsp-init (sidecar/control), a record's lines (operator/record) and the comparison
// with the CRDs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace bsp {

template <class T>
using Of = std::type_identity<T>;

// Attributes of a field besides its name and type.
struct Field {
  bool required = false;                 // a reader rejects its absence; otherwise the struct's default applies
  bool rare = false;                     // a writer omits the default
  std::uint64_t most = UINT64_MAX;       // of a number; entries of a list; bytes of a string
  std::uint64_t most_each = UINT64_MAX;  // the same of a list's entries
  double usual = 0;                      // of a grid: most entries are often this
};
inline constexpr Field kRequired{.required = true};
inline constexpr Field kRare{.rare = true};

struct AnyVisitor {
  template <class M>
  void operator()(const char*, M, Field = {}) {}
  void ignored(const char*) {}
};
template <class T>
concept HasFields = requires(AnyVisitor v) { fields_of(Of<T>{}, v); };

template <class T, class F>
struct ObjectVisitor {
  T& object;
  F& f;
  template <class M>
  constexpr void operator()(const char* name, M member, const Field& field = {}) {
    if constexpr (requires { f(name, object.*member, field); })
      f(name, object.*member, field);
    else
      f(name, object.*member);
  }
  constexpr void ignored(const char* name) {
    if constexpr (requires { f.ignored(name); }) f.ignored(name);
  }
};

// f(name, member) or f(name, member, field) for every field of one object.
template <class T, class F>
constexpr void visit_fields(T& object, F&& f) {
  fields_of(Of<std::remove_const_t<T>>{}, ObjectVisitor<T, std::remove_reference_t<F>>{object, f});
}

// --- Enums -----------------------------------------------------------------------------------------
// An enum declares its names beside it, in the order of the enumerators:
//
//   enum class Horizon { kWindow, kSuperstep };
//   constexpr auto names_of(Of<Horizon>) { return std::to_array<std::string_view>({"Window", "Superstep"}); }
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires { names_of(Of<E>{}); };

template <NamedEnum E>
struct EnumNames {
  static constexpr auto names = names_of(Of<E>{});
};

template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  return EnumNames<E>::names[static_cast<std::size_t>(value)];
}

template <NamedEnum E>
constexpr std::optional<E> enum_named(std::string_view name) {
  for (std::size_t i = 0; i < EnumNames<E>::names.size(); ++i)
    if (EnumNames<E>::names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace bsp
