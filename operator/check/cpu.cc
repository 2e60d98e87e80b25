#include "operator/check/cpu.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "base/core/read_file.h"

namespace bsp::checking {
namespace {

using Names = std::vector<std::string_view>;

// What each level adds, in /proc/cpuinfo's words: pni is SSE3, abm LZCNT.
const std::array<Names, 3>& levels() {
  static const std::array<Names, 3> all{Names{"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
                                        Names{"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
                                        Names{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}};
  return all;
}

// Those that math, crypto and string libraries select code by.
bool is_selected_by(std::string_view flag) {
  static const Names kOthers{"aes",    "erms",   "fsrm",   "gfni", "pclmulqdq",
                             "rdrand", "rdseed", "sha_ni", "vaes", "vpclmulqdq"};
  return flag.starts_with("avx") || flag.starts_with("amx") || std::ranges::contains(kOthers, flag);
}

Names words_of(std::string_view text) {
  Names words;
  for (const auto word : text | std::views::split(' '))
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  return words;
}

}  // namespace

Cpu cpu_of(std::string_view flags) {
  const Names has = words_of(flags);
  const auto has_all = [&has](const Names& names) {
    return std::ranges::all_of(names, [&has](std::string_view name) { return std::ranges::contains(has, name); });
  };
  Cpu cpu;
  Names within;
  for (const Names& level : levels()) {
    if (!has_all(level)) break;
    within.insert(within.end(), level.begin(), level.end());
    ++cpu.level;
  }
  for (const std::string_view flag : has)
    if (is_selected_by(flag) && !std::ranges::contains(within, flag)) cpu.features.emplace_back(flag);
  std::ranges::sort(cpu.features);
  return cpu;
}

Cpu read_cpu() {
  const std::string text = read_file("/proc/cpuinfo").value_or("");
  const std::size_t line = text.find("\nflags");
  if (line == std::string::npos) return {};
  const std::size_t begin = text.find(':', line), end = text.find('\n', line + 1);
  return begin < end ? cpu_of(std::string_view(text).substr(begin + 1, end - begin - 1)) : Cpu{};
}

}  // namespace bsp::checking
