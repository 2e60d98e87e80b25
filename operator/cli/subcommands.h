// A program of several commands: finds the one that the first words name.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace bsp::cli {

struct Subcommand {
  std::string name;  // one word or two: "local run"
  const char* purpose;
  int (*run)(std::span<const std::string> words);
};

struct Program {
  const char* name;   // as users type it
  const char* error;  // in front of messages, such as "bsp-operator"
  std::vector<Subcommand> commands;
};

// The command's exit code; kUsage, with the nearest name, if there is none.
int run(const Program& program, int argc, char** argv);

}  // namespace bsp::cli
