#include "operator/cli/table.h"

#include <algorithm>
#include <format>

namespace bsp::cli {
namespace {

constexpr std::size_t kPadding = 3;
constexpr std::size_t kLeast = 6;

std::size_t width(std::string_view text) {  // UTF-8: every byte but those that continue a character
  return static_cast<std::size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> header) : header_(std::move(header)), widths_(header_.size()) { widen(header_); }

void Table::widen(const std::vector<std::string>& row) {
  for (std::size_t i = 0; i < row.size() && i < widths_.size(); ++i)
    widths_[i] = std::max({widths_[i], width(row[i]) + kPadding, kLeast});
}

void Table::add(std::vector<std::string> row) {
  widen(row);
  rows_.push_back(std::move(row));
}

std::string Table::format(const std::vector<std::string>& row) const {
  std::string out;
  std::size_t column = 0;  // where the next cell begins
  std::size_t written = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!row[i].empty()) {
      out.append(column - written, ' ');
      out += row[i];
      written = column + width(row[i]);
    }
    column += widths_[i];
  }
  return out + "\n";
}

std::string Table::text(std::string_view indent) const {
  std::string out = std::string(indent) + format(header_);
  for (const auto& row : rows_) out += std::string(indent) + format(row);
  return out;
}

std::string Table::line(const std::vector<std::string>& row) {
  widen(row);
  return format(row);
}

std::string age(Time since, Time now) {
  if (since == Time{}) return "<unknown>";
  const long s = std::max<long>(0, std::chrono::duration_cast<std::chrono::seconds>(now - since).count());
  const long m = s / 60, h = m / 60, d = h / 24;
  auto two = [](long whole, char unit, long rest, char small) {
    return rest ? std::format("{}{}{}{}", whole, unit, rest, small) : std::format("{}{}", whole, unit);
  };
  if (s < 120) return std::format("{}s", s);
  if (m < 10) return two(m, 'm', s % 60, 's');
  if (h < 3) return std::format("{}m", m);
  if (h < 8) return two(h, 'h', m % 60, 'm');
  if (h < 48) return std::format("{}h", h);
  if (d < 8) return two(d, 'd', h % 24, 'h');
  if (d < 730) return std::format("{}d", d);
  return std::format("{}y", d / 365);
}

}  // namespace bsp::cli
