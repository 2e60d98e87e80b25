// The command line of one command. Parsing, error messages and --help all come from one declaration of each option:
//
//   cli::Command command("bsp-operator submit", "Create a BSPJob in a Kubernetes cluster.");
//   command.text("-f,--filename", "JOB.yaml", "a BSPJob", o.file).required();
//   command.flag("--wait", "wait until the job has ended", o.wait);
//   BSP_CHECK_OK(command.parse(words));
//
// Accepted forms: -o VALUE, -oVALUE, -o=VALUE, --output VALUE, --output=VALUE, --flag, --flag=false. The last value of a
// repeated option counts.
#pragma once

#include <charconv>
#include <concepts>
#include <format>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/core/error.h"

namespace bsp::cli {

// Stores a value. Returns what it must be instead ("must be true or false"), or "" if it is fine.
using Setter = std::function<std::string(const std::string& value)>;

class Command {
 public:
  struct Declared {
    bool* is_required;
    void required() { *is_required = true; }
  };

  // `name` as users type it; `purpose` is one sentence.
  Command(std::string name, std::string purpose);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `names`: "-f,--filename"; errors use the first. `value` stands for the value in the help: "FILE".
  Declared option(const std::string& names, const std::string& value, const std::string& help, Setter set);
  Declared text(const std::string& names, const std::string& value, const std::string& help, std::string& into);
  void flag(const std::string& names, const std::string& help, bool& into);
  // The words without a dash, in the order of their declaration.
  Declared argument(const std::string& name, const std::string& help, Setter set);
  Declared argument(const std::string& name, const std::string& help, std::string& into);
  // All words from here on.
  void arguments(const std::string& name, const std::string& help, std::vector<std::string>& into);
  // Another program's command line: all words from the first that is neither an option nor one of the arguments, as they are.
  void rest(const std::string& name, const std::string& help, std::vector<std::string>& into);
  // --help prints it after the options.
  void footer(const std::string& text);

  // kInvalid names the option, the remedy and the usage. --help prints the help and ends the program with kDone.
  Result<void> parse(std::span<const std::string> words);
  // kInvalid with the usage, for rules that involve several options.
  [[nodiscard]] std::unexpected<Error> wrong(const std::string& what) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A number within limits; Into is Number or std::optional<Number>.
template <class Number, class Into>
Setter number(Into& into, Number least, Number most) {
  return [&into, least, most](const std::string& text) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most;
    if (good) into = value;
    if (good) return "";
    if constexpr (std::floating_point<Number>)
      return std::format("must be a number from {:.15g} to {:.15g}", least, most);
    return std::format("must be a number from {} to {}", least, most);
  };
}

// A number whose limits the caller checks.
template <class Number>
Setter number(std::optional<Number>& into) {
  return [&into](const std::string& text) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc{} && end == text.data() + text.size();
    if (good) into = value;
    return good ? "" : std::integral<Number> ? "must be a whole number" : "must be a number";
  };
}

// One of a few words, each with its value.
template <class Into>
Setter one_of(Into& into, std::vector<std::pair<std::string, std::type_identity_t<Into>>> choices) {
  return [&into, choices = std::move(choices)](const std::string& text) -> std::string {
    std::string names;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (choices[i].first == text) {
        into = choices[i].second;
        return "";
      }
      names += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i].first;
    }
    return "must be " + names;
  };
}

}  // namespace bsp::cli
