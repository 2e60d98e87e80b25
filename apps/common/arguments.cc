#include "apps/common/arguments.h"

#include <algorithm>
#include <charconv>
#include <format>

namespace apps {
namespace {

template <class T>
bool read(std::string_view word, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size();
}

template <class T>
Option whole_number(std::string name, T& target, T least, T most, std::string_view help) {
  return {.name = std::move(name),
          .value = "N",
          .help = std::format("{} ({})", help, target),
          .takes = std::format("a whole number from {} to {}", least, most),
          .store = [&target, least, most](std::string_view word) {
            T value{};
            if (!read(word, value) || value < least || value > most) return false;
            target = value;
            return true;
          }};
}

bool read_factors(std::string_view word, std::map<int, double>& factors) {
  while (!word.empty()) {
    const std::string_view pair = word.substr(0, word.find(','));
    word.remove_prefix(std::min(word.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    int rank = 0;
    double factor = 0;
    if (equals == std::string_view::npos || !read(pair.substr(0, equals), rank) ||
        !read(pair.substr(equals + 1), factor) || rank < 0 || !(factor >= 1 && factor <= 1e6))
      return false;
    factors[rank] = factor;
  }
  return true;
}

}  // namespace

bool Common::line_due(std::uint64_t s, std::uint64_t all) const {
  const std::uint64_t every = progress > 0 ? progress : std::max<std::uint64_t>(1, all / 10);
  return s % every == 0;
}

Option whole(std::string name, std::uint64_t& target, std::uint64_t least, std::uint64_t most, std::string_view help) {
  return whole_number(std::move(name), target, least, most, help);
}

Option whole(std::string name, int& target, int least, int most, std::string_view help) {
  return whole_number(std::move(name), target, least, most, help);
}

Option real(std::string name, double& target, double above, double below, std::string_view help) {
  return {.name = std::move(name),
          .value = "X",
          .help = std::format("{} ({})", help, target),
          .takes = std::format("a number above {} and below {}", above, below),
          .store = [&target, above, below](std::string_view word) {
            double value = 0;
            if (!read(word, value) || !(value > above && value < below)) return false;
            target = value;
            return true;
          }};
}

Option text(std::string name, std::string value, std::string& target, std::string_view help) {
  return {.name = std::move(name),
          .value = std::move(value),
          .help = std::string(help),
          .takes = "a non-empty name",
          .store = [&target](std::string_view word) {
            target = word;
            return !word.empty();
          }};
}

Option flag(std::string name, bool& target, std::string_view help) {
  return {.name = std::move(name), .value = "", .help = std::string(help), .takes = "", .store = [&target](auto) {
            return target = true;
          }};
}

Option factors(std::string name, std::map<int, double>& target, std::string_view help) {
  return {.name = std::move(name),
          .value = "R=F[,R=F...]",
          .help = std::string(help),
          .takes = "comma-separated pairs RANK=FACTOR with factors from 1 to 1e6",
          .store = [&target](std::string_view word) { return read_factors(word, target); }};
}

std::vector<Option> common(Common& target, std::string_view output) {
  return {
      {.name = "--progress",
       .value = "K",
       .help = "print a line every K supersteps (a tenth of them)",
       .takes = "a positive whole number",
       .store = [&target](std::string_view word) { return read(word, target.progress) && target.progress > 0; }},
      text("--output", "FILE", target.output, output),
      flag("--verify", target.verify, "compare with the sequential program; exit with status 1 if the results differ"),
      flag("--sequential", target.sequential, "run without MPI"),
      flag("--help", target.help, "print this help")};
}

std::expected<void, std::string> parse(std::span<char* const> arguments, std::span<const Option> options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const auto option = std::ranges::find(options, name, &Option::name);
    if (option == options.end())
      return std::unexpected(std::format("{}: unknown option; --help lists the options", name));
    if (option->value.empty()) {
      option->store("");
      continue;
    }
    if (i + 1 == arguments.size())
      return std::unexpected(std::format("{}: missing value; expected {}", name, option->takes));
    const std::string_view value = arguments[++i];
    if (!option->store(value))
      return std::unexpected(std::format("{}: invalid value '{}'; expected {}", name, value, option->takes));
  }
  return {};
}

std::string usage(std::string_view program, std::span<const Option> options) {
  std::string all = std::format("usage: {} [options]\n", program);
  for (const Option& option : options)
    all += std::format("  {:<20} {}\n", option.name + (option.value.empty() ? "" : " ") + option.value, option.help);
  return all;
}

}  // namespace apps
