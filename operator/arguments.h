// Words and options of a command line, as every command of bsp-operator takes them: -o VALUE, -oVALUE, --output=VALUE, --flag.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp {

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
};

// kInvalid with what is wrong, the nearest option and the usage.
Result<Args> parse_arguments(std::span<const std::string> args, const Syntax& syntax);

// Prints "bsp-operator: …" to stderr; the exit status: 2 for kInvalid, else 1.
int told(const Error& error);

}  // namespace bsp
