// The line of bsp-init in a container's log from which on the output is another rank's: a container outlasts a rank that moves
// away, and its log stays.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bsp {

namespace rank_line {
inline constexpr std::string_view kBegin = "bsp-init: rank ", kEnd = " goes on in this container";
}  // namespace rank_line

inline std::string line_of_rank(std::uint32_t rank) {
  return std::string(rank_line::kBegin) + std::to_string(rank) + std::string(rank_line::kEnd);
}

// nullopt: it is another line.
inline std::optional<std::uint32_t> rank_of_line(std::string_view line) {
  if (!line.starts_with(rank_line::kBegin) || !line.ends_with(rank_line::kEnd)) return std::nullopt;
  line.remove_prefix(rank_line::kBegin.size());
  if (line.size() <= rank_line::kEnd.size()) return std::nullopt;
  line.remove_suffix(rank_line::kEnd.size());
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), rank);
  return error == std::errc() && end == line.data() + line.size() ? std::optional(rank) : std::nullopt;
}

}  // namespace bsp
