// Comma-separated tables: one header line, then rows with as many values. Lines that start with # are comments. No
// quotes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::sim {

struct Csv {
  std::string name;  // of the file, without directory and ending
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  // of each row, for messages

  [[nodiscard]] std::optional<std::size_t> column(std::string_view header_name) const;
  // The value of a row under that name; "" without such a column.
  [[nodiscard]] std::string_view at(std::size_t row, std::string_view header_name) const;
  // "my.csv, line 3": where a row stands.
  [[nodiscard]] std::string where(std::size_t row) const;
};

// kInvalid names file and line.
Result<Csv> parse_csv(std::string_view name, std::string_view text);
Result<Csv> read_csv(const std::string& path);

// A value that has to be there, as a number >= least. kInvalid names file, line and column.
Result<double> number_at(const Csv& csv, std::size_t row, std::string_view column, double least);
Result<std::uint64_t> whole_at(const Csv& csv, std::size_t row, std::string_view column, std::uint64_t least);

}  // namespace bsp::sim
