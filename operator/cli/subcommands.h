// A program of several commands: finds the one that the first words name.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::cli {

struct Subcommand {
  std::string name;  // one word or two: "local run"
  const char* purpose;
  Result<int> (*run)(std::span<const std::string> words);  // the exit code (exit_code.h)
};

struct Program {
  const char* name;   // as users type it
  const char* error;  // in front of messages, such as "bsp-operator"
  std::vector<Subcommand> commands;
  std::string (*shown)(std::string_view message) = [](std::string_view message) { return std::string(message); };
};

// Prints the command's error, if there is one. The exit code; kUsage, with the nearest name, if there is none.
int run(const Program& program, int argc, char** argv);

}  // namespace bsp::cli
