// The command line of an application: a table of its options, from which both parse() and usage() follow.
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
  std::string value;                            // what usage() calls its value; empty: it takes none
  std::string help;                             // a phrase, with the default
  std::string takes;                            // the values it can take, for the error: "a whole number from 1 to 9"
  std::function<bool(std::string_view)> store;  // false: not such a value
};

// What every application has.
struct Common {
  std::uint64_t progress = 0;  // a line every so many supersteps; 0: ten lines in all
  std::string output;          // file of the result
  bool verify = false;         // rank 0 runs the sequential program too and compares
  bool sequential = false;     // no MPI at all
  bool help = false;

  // Whether a line is due after superstep `s` of `all`.
  [[nodiscard]] bool line_due(std::uint64_t s, std::uint64_t all) const;
};

// The defaults that the help names are what the targets hold when the option is made.
Option whole(std::string name, std::uint64_t& target, std::uint64_t least, std::uint64_t most, std::string_view help);
Option whole(std::string name, int& target, int least, int most, std::string_view help);
Option real(std::string name, double& target, double above, double below, std::string_view help);
Option text(std::string name, std::string value, std::string& target, std::string_view help);
Option flag(std::string name, bool& target, std::string_view help);
// RANK=FACTOR[,RANK=FACTOR…], factors from 1 to 1e6.
Option factors(std::string name, std::map<int, double>& target, std::string_view help);
// --progress, --output, --verify, --sequential, --help; `output` says what the file holds.
std::vector<Option> common(Common& target, std::string_view output);

// The error is one sentence that names the option and what to give instead.
std::expected<void, std::string> parse(std::span<char* const> arguments, std::span<const Option> options);
std::string usage(std::string_view program, std::span<const Option> options);

}  // namespace apps
