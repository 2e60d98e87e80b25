// An application's command line: a table of its options, from which parse() and usage() follow.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

struct Option {
  std::string name;                             // "--rows"
  std::string value;                            // placeholder in usage(); empty: the option takes no value
  std::string help;                             // a phrase, with the default
  std::string takes;                            // the valid values, for the error: "a whole number from 1 to 9"
  std::function<bool(std::string_view)> store;  // false: not a valid value
};

// The options of every application.
struct Common {
  std::uint64_t progress = 0;  // print a line every `progress` supersteps; 0: ten lines in all
  std::string output;          // result file
  bool verify = false;         // rank 0 also runs the sequential program and compares
  bool sequential = false;     // don't use MPI
  bool help = false;

  // Whether a line is due after superstep `s` of `all`.
  [[nodiscard]] bool line_due(std::uint64_t s, std::uint64_t all) const;
};

// The help shows the target's value when the option is created as the default.
Option whole(std::string name, std::uint64_t& target, std::uint64_t least, std::uint64_t most, std::string_view help);
Option whole(std::string name, int& target, int least, int most, std::string_view help);
Option real(std::string name, double& target, double above, double below, std::string_view help);
Option text(std::string name, std::string value, std::string& target, std::string_view help);
Option flag(std::string name, bool& target, std::string_view help);
// RANK=FACTOR[,RANK=FACTOR…], factors from 1 to 1e6.
Option factors(std::string name, std::map<int, double>& target, std::string_view help);
// --progress, --output, --verify, --sequential, --help; `output` describes the file's contents.
std::vector<Option> common(Common& target, std::string_view output);

// The error is one sentence with the option and its valid values.
std::expected<void, std::string> parse(std::span<char* const> arguments, std::span<const Option> options);
std::string usage(std::string_view program, std::span<const Option> options);

}  // namespace apps
