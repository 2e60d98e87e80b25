// Writes a value of a record as JSON. Used by the .cc files of this directory.
//
// Doesn't use nlohmann::json: a call of 10⁵ ranks has millions of numbers, and writing one while the job runs should
// cost little more than its text. Numbers are the shortest decimals that read back as the same bits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "operator/record/fields.h"

namespace bsp::record {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
  void write(const T& value) {
    if constexpr (std::same_as<T, double>) {
      write_number(value);
    } else if constexpr (std::same_as<T, bool>) {
      out_ += value ? "true" : "false";
    } else if constexpr (std::integral<T>) {
      write_digits(value);
    } else if constexpr (kIsId<T>) {
      write_digits(value.value);
    } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
      write_text(value);
    } else if constexpr (NamedEnum<T>) {
      write_text(to_string(value));
    } else if constexpr (std::same_as<T, std::vector<decide::MeasuredSuperstep>>) {
      write_supersteps(value);
    } else if constexpr (kIsVector<T>) {
      if constexpr (HasFields<typename T::value_type>)
        write_columns(value);
      else
        write_list(value.size(), [&](std::size_t i) { write(value[i]); });
    } else {
      static_assert(HasFields<T>);
      out_ += '{';
      write_fields(value);
      out_ += '}';
    }
  }

  // Appends to the content of the braces.
  template <class T>
  void write_fields(const T& value) {
    fields_of(Of<T>{}, ObjectVisitor<T>{*this, value});
  }

  // Dense, or only the entries that aren't `usual`, with their places, row by row.
  template <class Grid, class T>
  void write_grid(const Grid& grid, T usual) {
    std::size_t unusual = 0;
    for (std::size_t i = 0; i < grid.rows(); ++i) {
      const std::span<const T> row = grid.row(i);
      for (std::size_t k = 0; k < row.size(); ++k) unusual += !same_bits(row[k], usual);
    }
    const bool dense = 2 * unusual > grid.rows() * grid.cols();
    out_ += "{\"rows\":";
    write_digits(grid.rows());
    out_ += ",\"cols\":";
    write_digits(grid.cols());
    const auto all_of = [&](const char* name, auto each) {
      out_ += name;
      bool first = true;
      const auto next = [&](std::size_t i, std::size_t j, const T& value) {
        if (!first) out_ += ',';
        first = false;
        each(i, j, value);
      };
      for (std::size_t i = 0; i < grid.rows(); ++i) {
        const std::span<const T> row = grid.row(i);
        if (dense)
          for (std::size_t j = 0; j < grid.cols(); ++j) next(i, j, grid[i, j]);
        else
          for (std::size_t k = 0; k < row.size(); ++k)
            if (!same_bits(row[k], usual)) next(i, column(grid, i, k), row[k]);
      }
      out_ += ']';
    };
    if (!dense) all_of(",\"at\":[", [&](std::size_t i, std::size_t j, const T&) { write_digits(i * grid.cols() + j); });
    all_of(",\"values\":[", [&](std::size_t, std::size_t, const T& value) { write(value); });
    out_ += '}';
  }

  void write_name(const char* name) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }

  template <class T>
  void write_field(const char* name, const T& value, const Field& field) {
    write_name(name);
    if constexpr (kIsGrid<T>)
      write_grid(value, static_cast<std::remove_cvref_t<decltype(value[0, 0])>>(field.usual));
    else
      write(value);
  }

  template <class T>
  static bool same_bits(const T& a, const T& b) {
    if constexpr (kIsVector<T>) {
      using Value = typename T::value_type;
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
    } else if constexpr (std::same_as<T, decide::SparseGrid>) {
      return a == b;  // −0 counts as 0
    } else if constexpr (kIsGrid<T>) {
      if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
      for (std::size_t i = 0; i < a.rows(); ++i)
        if (a.cols() > 0 && std::memcmp(a.row(i).data(), b.row(i).data(), a.row(i).size_bytes()) != 0) return false;
      return true;
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      return std::memcmp(&a, &b, sizeof(T)) == 0;
    }
  }

 private:
  // For the k-th entry of a row.
  template <class T>
  static std::size_t column(const decide::Grid<T>&, std::size_t, std::size_t k) {
    return k;
  }
  static std::size_t column(const decide::SparseGrid& grid, std::size_t i, std::size_t k) {
    return grid.pattern().columns(i)[k];
  }

  template <class T>
  struct ObjectVisitor {
    Writer& writer;
    const T& object;
    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      if constexpr (std::integral<Member<M>>)
        if (field.rare && object.*member == T{}.*member) return;
      if constexpr (kIsVector<Member<M>>)
        if (field.rare && (object.*member).empty()) return;
      writer.write_field(name, object.*member, field);
    }
  };

  template <class Row>
  struct ColumnVisitor {
    Writer& writer;
    const std::vector<Row>& rows;
    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      const Member<M> usual{};
      if (field.rare && std::ranges::all_of(rows, [&](const Row& row) { return same(row.*member, usual); })) return;
      writer.write_name(name);
      writer.write_list(rows.size(), [&](std::size_t i) { writer.write(rows[i].*member); });
    }
    template <class T>
    static bool same(const T& a, const T& b) {
      if constexpr (std::same_as<T, double>)
        return same_bits(a, b);
      else
        return a == b;
    }
  };

  struct SuperstepVisitor {
    Writer& writer;
    const decide::MeasuredSuperstep& t;
    const decide::MeasuredSuperstep* before;
    template <class M>
    void operator()(const char* name, M member, const Field& field = {}) {
      if constexpr (kIsVector<Member<M>> || kIsGrid<Member<M>>)
        if (before && same_bits(t.*member, before->*member)) return;
      writer.write_field(name, t.*member, field);
    }
  };

  template <class Row>
  void write_columns(const std::vector<Row>& rows) {
    out_ += '{';
    fields_of(Of<Row>{}, ColumnVisitor<Row>{*this, rows});
    out_ += '}';
  }

  void write_supersteps(const std::vector<decide::MeasuredSuperstep>& list) {
    write_list(list.size(), [&](std::size_t t) {
      out_ += '{';
      fields_of(Of<decide::MeasuredSuperstep>{}, SuperstepVisitor{*this, list[t], t == 0 ? nullptr : &list[t - 1]});
      out_ += '}';
    });
  }

  void write_list(std::size_t n, auto each) {
    out_ += '[';
    for (std::size_t i = 0; i < n; ++i) {
      if (i > 0) out_ += ',';
      each(i);
    }
    out_ += ']';
  }

  template <class T>
  void write_digits(T value) {
    char text[32];
    out_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }

  // JSON has no infinity, and a reader may read -0 as an integer.
  void write_number(double value) {
    if (std::isnan(value))
      out_ += "\"NaN\"";
    else if (std::isinf(value))
      out_ += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    else if (value == 0 && std::signbit(value))
      out_ += "-0.0";
    else
      write_digits(value);
  }

  void write_text(std::string_view text);  // line.cc

  std::string& out_;
};

}  // namespace bsp::record
