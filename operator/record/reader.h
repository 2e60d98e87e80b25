// Reads a value of a record from JSON. Used by the .cc files of this directory.
//
// Reading stops at the first error, which is kept with its path. Allocations are proportional to the text: a short line
// can't declare a large grid.
#pragma once

#include <algorithm>
#include <format>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "crds/nearest.h"
#include "operator/record/fields.h"

namespace bsp::record {

class Reader {
 public:
  using json = nlohmann::json;
  // `cells`: limit for the entries of all grids together.
  explicit Reader(std::size_t cells) : cells_(cells) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  template <class T>
  void read(const json& j, T& out, const Path& at) {
    if (failed()) return;
    if constexpr (std::same_as<T, double>) {
      read_number(j, out, at);
    } else if constexpr (std::same_as<T, bool>) {
      if (!j.is_boolean()) return wrong(at, "true or false", j);
      out = j.get<bool>();
    } else if constexpr (std::integral<T>) {
      read_whole(j, out, at);
    } else if constexpr (kIsId<T>) {
      read_whole(j, out.value, at);
    } else if constexpr (std::same_as<T, std::string>) {
      if (!j.is_string()) return wrong(at, "a string", j);
      out = j.get<std::string>();
    } else if constexpr (std::same_as<T, std::string_view>) {
      read_name(j, at, kObjectives, [](std::string_view name) { return name; }, out);
    } else if constexpr (NamedEnum<T>) {
      std::string_view name;
      read_name(j, at, EnumNames<T>::names, [](std::string_view one) { return one; }, name);
      if (!failed()) out = *enum_named<T>(name);
    } else if constexpr (std::same_as<T, std::vector<decide::MeasuredSuperstep>>) {
      read_supersteps(j, out, at);
    } else if constexpr (kIsVector<T>) {
      if constexpr (HasFields<typename T::value_type>)
        read_columns(j, out, at);
      else
        read_list(j, out, at);
    } else {
      static_assert(HasFields<T>);
      read_fields(j, out, at);
    }
  }

  // `known`: other fields the object may have. `repeats`: `out` is a copy of the superstep before, so its lists may be
  // omitted.
  template <class T>
  void read_fields(const json& j, T& out, const Path& at, std::vector<std::string_view> known = {},
                   bool repeats = false) {
    if (!j.is_object()) return wrong(at, "an object", j);
    ObjectVisitor<T> visitor{*this, j, out, at, std::move(known), repeats};
    fields_of(Of<T>{}, visitor);
    finish(j, visitor.known, at);
  }

  template <class T>
  void read_grid(const json& j, decide::Grid<T>& out, T usual, const Path& at) {
    const auto made = [&](std::uint32_t rows, std::uint32_t cols) { out = decide::Grid<T>(rows, cols, usual); };
    read_cells<T>(j, at, made, [&](std::uint32_t row, std::uint32_t col, const T& value) { out[row, col] = value; });
  }

  void read_grid(const json& j, decide::SparseGrid& out, double usual, const Path& at) {
    std::shared_ptr<decide::Pattern> pattern;
    std::uint32_t open = 0;  // the row under construction
    std::vector<double> values;
    const auto made = [&](std::uint32_t rows, std::uint32_t cols) {
      if (cols > decide::Pattern::kMostColumns)
        refuse({&at, "cols"}, std::format("is {}; the most is {}", cols, decide::Pattern::kMostColumns));
      else
        pattern = std::make_shared<decide::Pattern>(rows, cols);
    };
    read_cells<double>(j, at, made, [&](std::uint32_t row, std::uint32_t col, double value) {
      if (value == usual) return;
      for (; open < row; ++open) pattern->end_row();
      pattern->name(col);
      values.push_back(value);
    });
    if (failed()) return;
    for (; open < pattern->rows(); ++open) pattern->end_row();
    out = decide::SparseGrid(std::move(pattern), usual, std::move(values));
  }

  template <class T>
  void required(const json& object, std::string_view name, T& out, const Path& at) {
    if (failed()) return;
    const Path here{&at, name};
    if (const auto it = object.find(name); it != object.end())
      read(*it, out, here);
    else
      refuse(here, "is required");
  }

  // An unknown field is an error, which names the nearest known one.
  void finish(const json& object, const std::vector<std::string_view>& known, const Path& at);  // line.cc

  void refuse(const Path& at, std::string_view what) {
    if (!failed()) problem_ = at.text().empty() ? std::string(what) : std::format("{}: {}", at.text(), what);
  }

 private:
  // Calls made(rows, cols) once, then cell(i, j, value) for each entry in the text, row by row.
  template <class T>
  void read_cells(const json& j, const Path& at, auto made, auto cell) {
    if (failed()) return;
    if (!j.is_object()) return wrong(at, "an object", j);
    static constexpr std::string_view kParts[] = {"rows", "cols", "at", "values"};
    finish(j, {std::begin(kParts), std::end(kParts)}, at);
    std::uint32_t rows = 0, cols = 0;
    std::vector<std::uint64_t> places;
    std::vector<T> values;
    required(j, "rows", rows, at);
    required(j, "cols", cols, at);
    const bool sparse = j.contains("at");
    if (sparse) required(j, "at", places, at);
    required(j, "values", values, at);
    const std::uint64_t size = std::uint64_t{rows} * cols;
    if (failed() || !take_cells(size, at)) return;
    if (!sparse && values.size() != size)
      return refuse({&at, "values"},
                    std::format("has {} entries, but there are {} rows of {}", values.size(), rows, cols));
    if (sparse && values.size() != places.size())
      return refuse({&at, "values"}, std::format("has {} entries, but at has {}", values.size(), places.size()));
    made(rows, cols);
    for (std::size_t n = 0; n < values.size() && !failed(); ++n) {
      const std::uint64_t place = sparse ? places[n] : n;
      if (place >= size || (sparse && n > 0 && place <= places[n - 1])) {
        const Path list{&at, "at"};
        return refuse({&list, "", n}, std::format("must lie above the one before and below {}, is {}", size, place));
      }
      cell(static_cast<std::uint32_t>(place / cols), static_cast<std::uint32_t>(place % cols), values[n]);
    }
  }

  template <class T>
  struct ObjectVisitor {
    Reader& reader;
    const json& object;
    T& out;
    const Path& at;
    std::vector<std::string_view> known;
    bool repeats;
    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      known.push_back(name);
      if constexpr (kIsGrid<Member<M>>) {
        using Cell = std::remove_cvref_t<decltype((out.*member)[0, 0])>;
        const Path here{&at, name};
        if (left_out<Member<M>>(name))
          reader.take_cells((out.*member).rows() * (out.*member).cols(), at);
        else if (const auto it = object.find(name); it != object.end())
          reader.read_grid(*it, out.*member, static_cast<Cell>(field.usual), here);
        else if (!field.rare)
          reader.refuse(here, "is required");
      } else if (!left_out<Member<M>>(name) && (!field.rare || object.contains(name))) {
        reader.required(object, name, out.*member, at);
      }
    }
    template <class T2>
    [[nodiscard]] bool left_out(const char* name) const {
      return repeats && (kIsVector<T2> || kIsGrid<T2>) && !object.contains(name);
    }
  };

  template <class Row>
  struct ColumnVisitor {
    Reader& reader;
    const json& object;
    std::vector<Row>& rows;
    const Path& at;
    std::vector<std::string_view> known{};
    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      read_column(name, member);
      if (!field.rare && !object.contains(name)) reader.refuse({&at, name}, "is required");
    }
    template <class M>
    void read_column(const char* name, M member) {
      known.push_back(name);
      if (reader.failed()) return;
      const auto column = object.find(name);
      if (column == object.end()) return;
      const Path here{&at, name};
      if (!column->is_array()) return reader.wrong(here, "a list", *column);
      if (known.size() == 1) rows.resize(column->size());
      if (column->size() != rows.size())
        return reader.refuse(here, std::format("has {} entries, but {} has {}", column->size(), known[0], rows.size()));
      for (std::size_t i = 0; i < rows.size(); ++i) reader.read((*column)[i], rows[i].*member, Path{&here, "", i});
    }
  };

  [[nodiscard]] bool failed() const { return !problem_.empty(); }
  void wrong(const Path& at, std::string_view wanted, const json& j);  // line.cc

  void read_number(const json& j, double& out, const Path& at);

  bool take_cells(std::uint64_t cells, const Path& at) {
    if (cells <= cells_) return cells_ -= cells, true;
    refuse(at, "has more entries than a line of this length can hold");
    return false;
  }

  template <class T>
  void read_whole(const json& j, T& out, const Path& at) {
    if (!j.is_number_unsigned()) return wrong(at, "a whole number that is not negative", j);
    const auto value = j.get<std::uint64_t>();
    if (value > std::numeric_limits<T>::max())
      return refuse(at, std::format("{} is too large; the most is {}", value, std::numeric_limits<T>::max()));
    out = static_cast<T>(value);
  }

  // The equal entry of `list`.
  void read_name(const json& j, const Path& at, const auto& list, auto name_of, std::string_view& out) {
    if (!j.is_string()) return wrong(at, "a string", j);
    std::vector<std::string_view> names;
    for (const auto& one : list) names.push_back(name_of(one));
    const auto& text = j.get_ref<const std::string&>();
    const auto found = std::ranges::find(names, text);
    if (found == names.end())
      return refuse(at, std::format("\"{}\" is none of the known names{}", text, crds::suggestion(text, names)));
    out = *found;
  }

  template <class T>
  void read_list(const json& j, std::vector<T>& out, const Path& at) {
    if (!j.is_array()) return wrong(at, "a list", j);
    out.resize(j.size());
    for (std::size_t i = 0; i < out.size() && !failed(); ++i) read(j[i], out[i], Path{&at, "", i});
  }

  template <class Row>
  void read_columns(const json& j, std::vector<Row>& out, const Path& at) {
    if (!j.is_object()) return wrong(at, "an object with a list for each field", j);
    ColumnVisitor<Row> visitor{*this, j, out, at};
    fields_of(Of<Row>{}, visitor);
    finish(j, visitor.known, at);
  }

  void read_supersteps(const json& j, std::vector<decide::MeasuredSuperstep>& out, const Path& at) {
    if (!j.is_array()) return wrong(at, "a list", j);
    for (std::size_t t = 0; t < j.size() && !failed(); ++t) {
      const Path here{&at, "", t};
      if (t == 0)
        out.emplace_back();
      else
        out.push_back(decide::MeasuredSuperstep(out.back()));
      read_fields(j[t], out.back(), here, {}, t > 0);
    }
  }

  std::size_t cells_;
  std::string problem_;
};

}  // namespace bsp::record
