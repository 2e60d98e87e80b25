// Words and options of a command line, as every command of bsp-operator takes them: -o VALUE, -oVALUE, --output=VALUE,
// --flag,
// --flag=false.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp {

// --- Options that set what they are for ---------------------------------------------------------------------
struct Option {
  // What becomes of its value; the answer is what is wrong with it, said after it ("is true or false"), or "".
  std::function<std::string(const std::string& value)> set;
  bool flag = false;  // its value may be left out: true; one that is given follows a =
};

namespace option {
Option text(std::string& into);  // not empty
Option flag(bool& into);
Option number(unsigned& into, unsigned least, unsigned most);
}  // namespace option

// The words that belong to no option. `options`: by name, as it is typed ("-f", "--filename"). kInvalid with what is
// wrong, the nearest option and the usage. --help and -h print the usage and `more_help`, and end the program well.
Result<std::vector<std::string>> read_arguments(std::span<const std::string> args,
                                                const std::map<std::string, Option>& options, const char* usage,
                                                const std::string& more_help = {});

// --- Options by name ------------------------------------------------------------------------------------------
struct Args {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;  // long names without the dashes
  [[nodiscard]] bool has(const std::string& name) const { return options.contains(name); }
  [[nodiscard]] std::string get(const std::string& name, const std::string& otherwise = "") const;
};

struct Syntax {
  const char* usage;
  std::map<std::string, std::string> valued = {};  // "-o" -> "output"; "--output" follows from it
  std::map<std::string, std::string> flags = {};   // "-w" -> "watch"
  std::string more_help = {};                      // what --help prints after the usage
};

Result<Args> parse_arguments(std::span<const std::string> args, const Syntax& syntax);

// Prints "bsp-operator: …" to stderr; the exit status: 2 for kInvalid, else 1.
int told(const Error& error);

}  // namespace bsp
