#include "operator/cli/subcommands.h"

#include <cstdio>
#include <format>
#include <string_view>

#include "crds/nearest.h"
#include "operator/cli/exit_code.h"

namespace bsp::cli {
namespace {

using Words = std::span<const std::string>;

std::string usage_of(const Program& program) {
  std::string text = std::format(
      "usage: {} COMMAND [ARGUMENT…]\n\nCommands (COMMAND --help lists a command's options):\n", program.name);
  for (const Subcommand& command : program.commands)
    text += std::format("  {:<16} {}\n", command.name, command.purpose);
  return text + "\nExit status: 0 done; 1 failed; 2 wrong command line or input; 128 + signal if interrupted\n";
}

// How many of the first words name the command; 0 if they name another.
std::size_t words_of(const Subcommand& command, Words words) {
  if (words.empty()) return 0;
  if (words[0] == command.name) return 1;
  return words.size() >= 2 && words[0] + " " + words[1] == command.name ? 2 : 0;
}

Error unknown(const Program& program, Words words) {
  std::vector<std::string_view> known;
  for (const Subcommand& command : program.commands) known.push_back(command.name);
  std::string given = words[0];
  if (given == "local" && words.size() > 1) given += " " + words[1];
  return {
      .code = ErrorCode::kInvalid,
      .message = std::format("unknown command \"{}\"{}\n{}", given, crds::suggestion(given, known), usage_of(program))};
}

}  // namespace

int run(const Program& program, int argc, char** argv) {
  keep_standard_streams();
  const std::vector<std::string> all(argv + 1, argv + argc);
  const Words words(all);
  for (const Subcommand& command : program.commands)
    if (const std::size_t used = words_of(command, words); used > 0) {
      const auto status = command.run(words.subspan(used));
      if (status) return ended(*status, program.error);
      return report_error({status.error().code, program.shown(status.error().message)}, program.error);
    }
  if (!words.empty() && words[0] != "help" && words.back() != "--help" && words.back() != "-h")
    return report_error(unknown(program, words), program.error);
  std::fputs(usage_of(program).c_str(), stdout);
  return ended(kDone, program.error);
}

}  // namespace bsp::cli
