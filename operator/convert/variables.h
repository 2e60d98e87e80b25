// The values of a launcher's variables, as far as they are known before it runs, and words with them filled in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/convert/shell.h"

namespace bsp::convert {

class Variables {
 public:
  struct Value {
    std::optional<std::string> text;  // if it is known
    bool exported = false;
    bool computed = false;  // by something that only the launcher can run
    bool hosts = false;     // the names of all workers, from the hostfile
  };

  // `environment`: of the launcher's container. `hosts`: the lines of the hostfile that the MPI operator
  // writes; 0 if a person fills their number in.
  Variables(std::map<std::string, std::optional<std::string>> environment, std::uint64_t hosts)
      : environment_(std::move(environment)), hosts_(hosts) {}
  Variables() = default;

  std::map<std::string, Value, std::less<>> script;  // what the script assigns

  // nullopt if a part of it is unknown.
  [[nodiscard]] std::optional<std::string> value(const Word& word) const;
  // The words that a shell makes of this one; the word itself if a part of it is unknown.
  [[nodiscard]] std::vector<Word> filled_in(const Word& word) const;
  // Of the script's variables, those that the word uses.
  [[nodiscard]] std::vector<std::string> used(const Word& word) const;
  // Whether the word is a list of all workers, and a variable that nothing sets, which whoever fills in a template may mean.
  [[nodiscard]] bool is_host_list(const Word& word) const;
  [[nodiscard]] bool is_placeholder(const Word& word) const;
  // What of the word has another value in the launcher than in a rank's shell; empty if nothing has.
  [[nodiscard]] std::string launchers_own(const Word& word) const;

 private:
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> value(const Piece& piece) const;
  [[nodiscard]] std::optional<std::string> output(const std::string& script_text) const;
  [[nodiscard]] bool lists_hosts(const std::string& script_text) const;

  std::map<std::string, std::optional<std::string>> environment_;  // without a value: known only in the pod
  std::uint64_t hosts_ = 0;
};

// That the MPI operator, or Volcano, writes: a line for each worker.
[[nodiscard]] bool is_hostfile_of_operator(std::string_view path);

}  // namespace bsp::convert
