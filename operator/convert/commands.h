// What the commands of a launcher's script do: those that only wait, look or print may be left out.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/convert/shell.h"
#include "operator/convert/variables.h"

namespace bsp::convert {

struct Offence {
  int line = 0;
  std::string what;  // runs "cp"; writes "input.nml"
};

class Judge {
 public:
  // `variables`: of the script so far.
  explicit Judge(const Variables& variables) : variables_(variables) {}

  std::vector<std::string> hostfiles;  // that mpirun gets: whatever writes them only concerns the launcher

  // What the script does beside waiting, looking and printing; nullopt if nothing.
  [[nodiscard]] std::optional<Offence> offence(const Script& script);
  [[nodiscard]] std::optional<Offence> offence(const Pipeline& pipeline);
  [[nodiscard]] std::optional<Offence> offence(const Command& command);

 private:
  [[nodiscard]] std::optional<Offence> of_simple(const Command& command);
  [[nodiscard]] std::optional<Offence> of_substitutions(const Command& command);
  [[nodiscard]] std::optional<Offence> of_text(const std::string& text, int line);

  [[nodiscard]] bool is_hostfile(const Word& word) const;

  const Variables& variables_;
  std::map<std::string, std::optional<Offence>, std::less<>> functions_;  // those that the script has defined so far
  int depth_ = 0;
};

// The words from the command on, behind time, exec, timeout and the like, and NAME=VALUE.
struct Unwrapped {
  std::vector<Word> assignments;
  std::span<const Word> words;
  std::string timeout;  // timeout's duration
};
[[nodiscard]] Unwrapped unwrapped(std::span<const Word> words);

// Whether mpirun, with these words behind it, only asks the workers something, as hostname or nvidia-smi does.
[[nodiscard]] bool is_probe(std::span<const Word> words);

// The name that the word assigns, without "+"; empty if it assigns none.
[[nodiscard]] std::string assigned_name(const Word& word);

// The name without a path.
[[nodiscard]] std::string base_name(const std::string& word);

// The file that a redirection changes; empty if it is none, or a device such as /dev/null.
[[nodiscard]] std::string written_file(const Redirection& redirection);

// Whether the rest depends on the command's result, as on that of a test.
[[nodiscard]] bool is_condition(const Pipeline& pipeline);

// Whether it may end the whole script with success.
[[nodiscard]] bool ends_well(const Command& command);

// The variables that it may set.
void collect_assigned(const Command& command, std::vector<std::string>& names);

}  // namespace bsp::convert
