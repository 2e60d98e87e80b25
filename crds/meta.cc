#include "crds/meta.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>

namespace bsp::crds {

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto it = std::ranges::find(conditions, type, &Condition::type);
  return it == conditions.end() ? nullptr : &*it;
}

bool set_condition(std::vector<Condition>& conditions, Condition next, Time now) {
  const auto it = std::ranges::find(conditions, next.type, &Condition::type);
  next.last_transition_time = now;
  if (it == conditions.end()) {
    conditions.push_back(std::move(next));
    return true;
  }
  if (it->status == next.status) next.last_transition_time = it->last_transition_time;
  const bool changed = it->status != next.status || it->reason != next.reason || it->message != next.message ||
                       it->observed_generation != next.observed_generation;
  *it = std::move(next);
  return changed;
}

namespace {

constexpr double kMostQuantity = 9.0e18;

Result<double> quantity(std::string_view text) {
  struct Suffix {
    std::string_view name;
    double factor;
  };
  static constexpr Suffix kSuffixes[] = {{"", 1},
                                         {"n", 1e-9},
                                         {"u", 1e-6},
                                         {"m", 1e-3},
                                         {"k", 1e3},
                                         {"M", 1e6},
                                         {"G", 1e9},
                                         {"T", 1e12},
                                         {"P", 1e15},
                                         {"E", 1e18},
                                         {"Ki", 1024.0},
                                         {"Mi", 1048576.0},
                                         {"Gi", 1073741824.0},
                                         {"Ti", 1099511627776.0},
                                         {"Pi", 1125899906842624.0},
                                         {"Ei", 1152921504606846976.0}};
  double number = 0;
  const char* begin = text.data() + text.starts_with('+');
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  const std::string_view rest(end, text.data() + text.size());
  const auto suffix = std::ranges::find(kSuffixes, rest, &Suffix::name);
  if (error != std::errc{} || suffix == std::end(kSuffixes) || !std::isfinite(number) || number < 0)
    return fail(ErrorCode::kInvalid,
                std::format("\"{}\" is not a quantity; write for example 512Mi, 2Gi, 250m or 1.5", text));
  return number * suffix->factor;
}

Result<std::uint64_t> scaled(std::string_view text, double scale) {
  BSP_TRY(const double number, quantity(text));
  const double value = number * scale;
  const double epsilon = std::min(value * 1e-12, 1e-3);  // keeps 0.29 * 1000 from becoming 291
  return static_cast<std::uint64_t>(std::min(kMostQuantity, std::ceil(value - epsilon)));
}

}  // namespace

Result<std::uint64_t> quantity_value(std::string_view text) { return scaled(text, 1); }
Result<std::uint64_t> quantity_milli(std::string_view text) { return scaled(text, 1000); }

Result<std::uint64_t> duration_seconds(std::string_view text) {
  constexpr std::uint64_t kMost = 1'000'000;  // of one unit: no sum of them overflows
  const auto invalid =
      fail(ErrorCode::kInvalid, std::format("\"{}\" is not a duration such as 30s, 5m or 1h30m", text));
  std::uint64_t sum = 0, last = UINT64_MAX;
  std::string_view left = text;
  while (!left.empty()) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), number);
    if (error != std::errc() || number > kMost || end == left.data() + left.size()) return invalid;
    const std::uint64_t unit = *end == 'h' ? 3600 : *end == 'm' ? 60 : *end == 's' ? 1 : 0;
    if (unit == 0 || unit >= last) return invalid;
    sum += number * unit;
    last = unit;
    left = left.substr(static_cast<std::size_t>(end - left.data()) + 1);
  }
  return text.empty() ? Result<std::uint64_t>(invalid) : sum;
}

}  // namespace bsp::crds
