#include "operator/convert/script.h"

#include <algorithm>
#include <array>
#include <format>
#include <ranges>
#include <set>

#include "operator/convert/commands.h"
#include "operator/convert/mpirun.h"
#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

constexpr std::string_view kBefore =
    "do it in the image, in an init container of the worker, or in a Job that runs before";
constexpr std::string_view kAfter = "do it in a Job that starts when this one has ended";

// They set the environment up, for a rank as for mpirun.
constexpr auto kSetUp = std::to_array<std::string_view>({".", "source", "module", "ml", "spack", "conda", "mamba"});

std::string first_word(const Command& command) {
  const std::span<const Word> words = unwrapped(command.words).words;
  if (!command.compound.empty()) return command.compound;
  return words.empty() ? "" : words[0].text;
}

bool runs_mpirun(std::span<const Word> words) {
  return !words.empty() && is_mpirun(words[0].text) &&
         !(words.size() == 2 && (words[1].text == "--version" || words[1].text == "-V" || words[1].text == "--help"));
}

int count_mpirun(const Script& script, bool probes) {
  int count = 0;
  for (const Pipeline& pipeline : script)
    for (const Command& command : pipeline.commands) {
      const std::span<const Word> words = unwrapped(command.words).words;
      if (!command.compound.empty())
        count += count_mpirun(command.inner, probes);
      else if (runs_mpirun(words) && (probes || !is_probe(words.subspan(1))))
        ++count;
    }
  return count;
}

// As they are written, since their names aren't known yet.
void collect_hostfiles(const Script& script, std::vector<std::string>& files) {
  for (const Pipeline& pipeline : script)
    for (const Command& command : pipeline.commands) {
      collect_hostfiles(command.inner, files);
      const std::span<const Word> words = unwrapped(command.words).words;
      for (std::size_t i = 1; runs_mpirun(words) && i + 1 < words.size(); ++i)
        if (is_hostfile_option(words[i].text)) files.push_back(words[i + 1].text);
    }
}

bool is_group(const Command& command) { return command.compound == "{" || command.compound == "("; }

std::string text_of_command(const Command& command) {
  std::string text;
  for (const Word& word : command.words) text += (text.empty() ? "" : " ") + word.source;
  for (const Redirection& redirection : command.redirections)
    text += " " + redirection.sign + redirection.target.source;
  return text;
}

// A word of a container's command: its $(NAME) are filled in when a pod starts.
Word container_word(const std::string& text) {
  Word word = {.text = text, .source = text, .expanded = false, .pieces = {}};
  std::size_t done = 0;
  for (std::size_t at = text.find("$("); at != std::string::npos; at = text.find("$(", at + 1)) {
    const std::size_t length = name_length(std::string_view(text).substr(at + 2));
    if (length == 0 || !text.substr(at + 2 + length).starts_with(')')) continue;
    word.pieces.push_back({.text = text.substr(done, at - done)});
    word.pieces.push_back({.kind = Piece::Kind::kCommand, .text = text.substr(at + 2, length)});
    done = at + length + 3;
  }
  word.pieces.push_back({.text = text.substr(done)});
  return word;
}

class ScriptReader {
 public:
  ScriptReader(bool stops, Variables variables, std::size_t run) : stops_(stops), run_(run) {
    launch_.variables = std::move(variables);
  }

  Result<Launch> read(const Script& script) {
    probes_ = count_mpirun(script, false) == 0;  // the only ones there are
    launch_.runs = static_cast<std::size_t>(std::max(1, count_mpirun(script, probes_)));
    collect_hostfiles(script, judge_.hostfiles);
    const auto done = list(script);
    if (!found_ && count_mpirun(script, true) == 0) {
      if (blamed_.empty() && done) blamed_ = std::format("runs \"{}\"", last_);
      return fail(ErrorCode::kInvalid,
                  std::format("{}: write mpirun and the program here, or the program itself as the command of a BSPJob",
                              blamed_.empty() ? "runs no mpirun" : blamed_ + " and not mpirun"));
    }
    if (!done) return std::unexpected(done.error());
    if (!dropped_.empty()) launch_.notes.push_back("not carried over, for only the launcher needs it: " + dropped_);
    return std::move(launch_);
  }

 private:
  std::unexpected<Error> wrong(int line, std::string_view what, std::string_view remedy) {
    if (blamed_.empty() && what.starts_with("runs \"")) blamed_ = what;
    return fail(ErrorCode::kInvalid, std::format("line {} of its script {}: {}", line, what, remedy));
  }
  void note(int line, std::string_view what) {
    launch_.notes.push_back(std::format("line {} of the script: {}", line, what));
  }

  Result<void> list(const Script& script) {
    for (std::size_t i = 0; i < script.size(); ++i) {
      const Pipeline& next = script[i];
      const Command& first = next.commands.front();
      exits_ = next.next == "||" && i + 1 < script.size() && first_word(script[i + 1].commands.front()) == "exit";
      if (before_ == ";" || before_ == "&") depends_.clear();
      if (is_group(first) && count_mpirun(first.inner, probes_) > 0) {
        BSP_CHECK_OK(output(next));
        BSP_CHECK_OK(list(first.inner));
      } else {
        BSP_CHECK_OK(pipeline(next));
      }
      if (next.next == "||")
        depends_ = std::format("the failure of \"{}\"", first_word(next.commands.back()));
      else if (next.next == "&&" && is_condition(next))
        depends_ = std::format("\"{}\"", first_word(next.commands.back()));
      before_ = next.next;
    }
    return {};
  }

  Result<void> pipeline(const Pipeline& next) {
    const Command& first = next.commands.front();
    if (last_ = first_word(first); last_.empty()) last_ = first.words.empty() ? "" : first.words[0].text;
    const Unwrapped plain = unwrapped(first.words);
    std::vector<Word> words;  // behind the assignments, known values filled in
    for (const Word& word : plain.words)
      for (Word& part : launch_.variables.filled_in(word)) words.push_back(std::move(part));
    if (first.compound.empty() && runs_mpirun(words) && (probes_ || !is_probe(std::span(words).subspan(1))))
      return mpirun(next, plain, std::move(words));
    for (const Command& command : next.commands | std::views::drop(1))
      if (runs_mpirun(unwrapped(command.words).words))
        return wrong(command.line, "pipes into mpirun, of which rank 0 alone would read",
                     "give the program its input as a file's name");
    if (!found_) {
      BSP_TRY(const bool is_carried, carried(next, plain));
      if (is_carried) return {};
    } else if (is_setting(next, plain)) {
      return {};
    }
    if (const auto offence = judge_.offence(next))
      return wrong(offence->line, offence->what,
                   count_mpirun({next}, probes_) > 0 ? "let mpirun run once, outside of it"
                   : found_                          ? kAfter
                                                     : kBefore);
    if (!found_ && next.commands.size() == 1 && ends_well(first))
      return wrong(first.line, std::format("may end with \"{}\" before mpirun", last_), "let mpirun run in any case");
    std::vector<std::string> names;
    for (const Command& command : next.commands)
      if (last_ != "unset") collect_assigned(command, names);
    for (const std::string& name : names) {
      Variables::Value& value = launch_.variables.script[name];
      value.text = std::nullopt;
      value.computed = true;
    }
    if (found_ && before_ == "||" && last_ != "exit")
      note(first.line, "what follows || is not carried over: a program that fails ends the job");
    else
      drop(first);
    return {};
  }

  void drop(const Command& command) {
    constexpr auto kQuiet =
        std::to_array<std::string_view>({"set", "unset", "shopt", "trap", ":", "true", "exit", "wait"});
    if (command.compound.ends_with("()") || std::ranges::contains(kQuiet, last_)) return;
    if (last_ == last_dropped_) return;
    last_dropped_ = last_;
    dropped_ += std::format("{}{} (line {})", dropped_.empty() ? "" : ", ", last_, command.line);
  }

  // Whether the command only changes the shell that runs mpirun.
  static bool is_setting(const Pipeline& next, const Unwrapped& plain) {
    if (next.commands.size() > 1 || !next.commands[0].compound.empty()) return false;
    if (plain.words.empty()) return true;
    const std::string& name = plain.words[0].text;
    return name == "cd" || name == "pushd" || name == "popd" || std::ranges::contains(kSetUp, name);
  }

  // A command before mpirun that changes what mpirun, or a rank, starts with. False if it is none.
  Result<bool> carried(const Pipeline& next, const Unwrapped& plain) {
    const Command& command = next.commands.front();
    if (next.commands.size() > 1 || !command.compound.empty() || command.words.empty()) return false;
    const std::string name = plain.words.empty() ? "" : plain.words[0].text;
    const bool stops = stops_ || exits_ || next.next == "&&";
    const auto arguments = plain.words.subspan(plain.words.empty() ? 0 : 1);
    const bool sets =
        name == "export" || name == "declare" || name == "typeset" || name == "readonly" || name == "local";
    const bool sets_up = std::ranges::contains(kSetUp, name);
    if (name == "set") set_options(arguments);
    if (name == "unset")
      for (const Word& word : arguments)
        if (is_name(word.text)) launch_.variables.script[word.text] = {.text = ""};
    if (!name.empty() && !sets && !sets_up && name != "cd" && name != "mkdir") return false;
    if (!depends_.empty() || next.next == "&")
      return wrong(command.line,
                   std::format("makes \"{}\" depend on {}", name.empty() ? command.words[0].text : name,
                               depends_.empty() ? "\"&\"" : depends_),
                   "write it alone, as it is to be");
    for (const Redirection& redirection : command.redirections)
      if (const std::string file = written_file(redirection); !file.empty())
        return wrong(command.line, std::format("writes \"{}\"", file), kBefore);
    if (name.empty() || sets) return assign(command, plain, sets);
    if (sets_up) return set_up(command, stops);
    if (name == "cd") return change_directory(command, arguments, stops);
    if (!judge_.offence(next)) return false;  // for SSH
    if (!std::ranges::any_of(arguments, [](const Word& word) {
          return word.text == "--parents" ||
                 (word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('p'));
        }))
      return wrong(command.line, "runs \"mkdir\" without -p, which would fail in all ranks but one", "write mkdir -p");
    BSP_CHECK_OK(add_step(command, stops, {}));
    return true;
  }

  void set_options(std::span<const Word> options) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const std::string& option = options[i].text;
      const bool on = option.starts_with('-');
      if (option.ends_with('o') && i + 1 < options.size() && options[i + 1].text == "errexit") stops_ = on;
      if ((on || option.starts_with('+')) && option.contains('e')) stops_ = on;
      if ((on || option.starts_with('+')) && option.contains('a')) exports_all_ = on;
    }
  }

  Result<bool> assign(const Command& command, const Unwrapped& plain, bool by_command) {
    if (const auto offence = judge_.offence(command)) return wrong(offence->line, offence->what, kBefore);
    bool exports = exports_all_;
    std::vector<Word> words = plain.assignments;
    if (by_command) {
      exports = exports || plain.words[0].text == "export";
      for (const Word& word : plain.words.subspan(1)) {
        exports = exports || (word.text.starts_with('-') && word.text.contains('x'));
        if (shell_assignment(word.source))
          words.push_back(word);
        else if (const auto known = launch_.variables.script.find(word.text); known != launch_.variables.script.end())
          known->second.exported = known->second.exported || exports;
      }
    }
    for (const Word& word : words)  // export expands all its words before it sets the first, unlike A=1 B=$A
      for (const Word& other : words)
        if (by_command && &word != &other && names_variable(word.source, assigned_name(other)))
          return wrong(command.line, std::format("sets {} and uses it in one \"{}\"", assigned_name(other), last_),
                       "write two commands");
    for (const Word& word : words) set(word, exports);
    return true;
  }

  void set(const Word& word, bool exports) {
    auto [name, text] = *shell_assignment(word.source);
    const bool appends = name.ends_with('+');
    if (appends) name.pop_back();
    Word value = word;
    if (!value.pieces.empty()) value.pieces.front().text.erase(0, name.size() + (appends ? 2 : 1));
    Variables& variables = launch_.variables;
    const auto old = variables.script.find(name);
    const bool was_exported = old != variables.script.end() && old->second.exported;
    const auto known = variables.value(value);
    Step step = {.text = word.source, .assigns = name, .needs = variables.used(value)};
    if (appends) step.needs.push_back(name);
    Variables::Value next = {.text = known, .exported = exports || was_exported, .computed = false};
    if (!known) next.computed = !variables.launchers_own(value).empty();
    next.hosts = !known && variables.is_host_list(value);
    if (known) step.text = std::format("{}{}{}", name, appends ? "+=" : "=", quoted(*known));
    if (appends && old != variables.script.end()) {
      next.computed = next.computed || old->second.computed;
      next.text = known && old->second.text ? std::optional(*old->second.text + *known) : std::nullopt;
    } else if (appends) {
      next.text = std::nullopt;
    }
    variables.script[name] = std::move(next);
    launch_.steps.push_back(std::move(step));
  }

  Result<void> add_step(const Command& command, bool stops, std::vector<std::string> needs) {
    for (const Word& word : command.words) {
      if (const std::string own = launch_.variables.launchers_own(word); !own.empty())
        return wrong(command.line,
                     std::format("gives \"{}\" {}, which only the launcher knows", first_word(command), own),
                     "write its value");
      for (std::string& name : launch_.variables.used(word)) needs.push_back(std::move(name));
    }
    launch_.steps.push_back(
        {.text = text_of_command(command), .stops = stops, .assigns = "", .needs = std::move(needs)});
    note(command.line, std::format("\"{}\" runs in each rank, before the program", text_of_command(command)));
    return {};
  }

  Result<bool> set_up(const Command& command, bool stops) {
    std::vector<std::string> all;  // the file may read any variable
    for (const auto& [name, value] : launch_.variables.script)
      if (!value.computed) all.push_back(name);
    launch_.is_set_up = true;
    BSP_CHECK_OK(add_step(command, stops, std::move(all)));
    return true;
  }

  Result<bool> change_directory(const Command& command, std::span<const Word> arguments, bool stops) {
    if (arguments.size() != 1 || arguments[0].text == "-")
      return wrong(command.line, std::format("runs \"{}\"", text_of_command(command)), "name the directory");
    const auto known = launch_.variables.value(arguments[0]);
    const bool in_order = std::ranges::all_of(launch_.steps, [](const Step& step) { return !step.assigns.empty(); });
    if (known && in_order && (known->starts_with('/') || !launch_.directory.empty())) {
      launch_.directory = known->starts_with('/') ? *known : launch_.directory + "/" + *known;
      return true;
    }
    BSP_CHECK_OK(add_step(command, stops, {}));
    return true;
  }

  Result<void> mpirun(const Pipeline& next, const Unwrapped& plain, std::vector<Word> words) {
    const Command& command = next.commands.front();
    if (seen_++ != run_) return {};
    found_ = true;
    if (!depends_.empty())
      return wrong(command.line, std::format("makes mpirun depend on {}", depends_), "let mpirun run in any case");
    if (next.negated || next.next == "&")
      return wrong(command.line, std::format("runs mpirun with \"{}\"", next.negated ? "!" : "&"), "remove it");
    for (const Word& word : plain.assignments) set(word, true);
    launch_.mpirun = words.front().text;
    launch_.timeout = plain.timeout;
    launch_.words.assign(words.begin() + 1, words.end());
    return output(next);
  }

  // Where mpirun's output goes, and where its input comes from.
  Result<void> output(const Pipeline& next) {
    constexpr std::string_view kLog = "is not carried over: the output of each rank is in the log of its pod";
    for (const Redirection& redirection : next.commands.front().redirections) {
      const std::string text = redirection.sign + redirection.target.source;
      if (redirection.sign.contains('<') && redirection.target.text != "/dev/null")
        return wrong(next.commands.front().line,
                     std::format("gives mpirun an input, {}, of which rank 0 alone would read", text),
                     "give the program its input as a file's name");
      if (!written_file(redirection).empty()) note(next.commands.front().line, std::format("{} {}", text, kLog));
    }
    for (const Command& filter : next.commands | std::views::drop(1)) {
      if (first_word(filter) != "tee")
        if (const auto offence = judge_.offence(filter)) return wrong(offence->line, offence->what, kAfter);
      note(filter.line, std::format("| {} {}", text_of_command(filter), kLog));
    }
    return {};
  }

  Launch launch_;
  Judge judge_{launch_.variables};
  bool stops_, exits_ = false, exports_all_ = false, found_ = false;
  std::size_t run_, seen_ = 0;  // the mpirun that is read, and how many were met
  bool probes_ = false;         // whether an mpirun that only looks is the program
  std::string before_ = ";";    // the operator in front of the next command
  std::string depends_;         // what decides whether the next command runs
  std::string blamed_, last_, dropped_, last_dropped_;
};

}  // namespace

Result<Launch> read_script(std::string_view text, bool stops, Variables variables, std::size_t run) {
  const auto script = read_shell(text);
  if (!script) return fail(ErrorCode::kInvalid, "its script " + script.error().message);
  if (script->empty()) return fail(ErrorCode::kInvalid, "its script is empty");
  return ScriptReader(stops, std::move(variables), run).read(*script);
}

Result<Launch> read_plain(const std::vector<std::string>& words, Variables variables) {
  Command command;
  for (const std::string& text : words) command.words.push_back(container_word(text));
  return ScriptReader(false, std::move(variables), 0).read({{.commands = {std::move(command)}}});
}

Result<std::string> preparation(const Launch& launch, const std::vector<Word>& words,
                                const std::vector<std::string>& names) {
  std::set<std::string> needed(names.begin(), names.end());
  for (const Word& word : words) {
    if (const std::string own = launch.variables.launchers_own(word); !own.empty())
      return fail(ErrorCode::kInvalid,
                  std::format("{} holds {}, which only the launcher knows: write its value", word.source, own));
    for (const std::string& name : launch.variables.used(word)) needed.insert(name);
  }
  for (const std::string& name : names)
    if (const auto known = launch.variables.script.find(name);
        known != launch.variables.script.end() && known->second.computed)
      return fail(
          ErrorCode::kInvalid,
          std::format("-x {} passes on what the script computes in the launcher: write -x {}=VALUE", name, name));
  for (std::size_t known = 0; known != needed.size() + 1;) {  // until a round adds nothing
    known = needed.size() + 1;
    for (const Step& step : launch.steps)
      if (step.assigns.empty() || needed.contains(step.assigns)) needed.insert(step.needs.begin(), step.needs.end());
  }
  std::string text;
  for (const Step& step : launch.steps)
    if (step.assigns.empty() || needed.contains(step.assigns)) text += step.text + (step.stops ? " || exit; " : "; ");
  for (const std::string& name : names) text += std::format("export {}; ", name);
  return text;
}

}  // namespace bsp::convert
