#include "operator/convert/commands.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <format>

#include "operator/convert/mpirun.h"
#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

// They only wait, look or print, whatever their arguments are.
constexpr auto kHarmless = std::to_array<std::string_view>(
    {":",          "[",        "[[",       "basename",  "break",       "cat",         "cmp",        "continue",
     "cut",        "date",     "declare",  "df",        "diff",        "dig",         "dirname",    "du",
     "echo",       "egrep",    "exit",     "export",    "expr",        "false",       "fgrep",      "file",
     "free",       "getent",   "grep",     "groups",    "hash",        "head",        "history",    "host",
     "hostname",   "ibstat",   "ibstatus", "id",        "jq",          "ldd",         "let",        "local",
     "ls",         "lscpu",    "lspci",    "nc",        "ncat",        "netcat",      "netstat",    "nproc",
     "nslookup",   "numfmt",   "pgrep",    "ping",      "printenv",    "printf",      "ps",         "pwd",
     "read",       "readlink", "readonly", "realpath",  "return",      "rocm-smi",    "seq",        "set",
     "shift",      "shopt",    "sleep",    "sort",      "ss",          "ssh-keyscan", "sshd",       "stat",
     "tac",        "tail",     "telnet",   "test",      "top",         "tr",          "trap",       "true",
     "ts",         "type",     "typeset",  "ulimit",    "uname",       "uniq",        "unset",      "wait",
     "wc",         "which",    "whoami",   "yes",       "ibv_devinfo", "ibv_devices", "nvidia-smi", "ompi_info",
     "ssh-keygen", "sysctl",   "mapfile",  "readarray", "paste"});

bool has_option(std::span<const Word> words, std::string_view start) {
  return std::ranges::any_of(words, [&](const Word& word) { return word.text.starts_with(start); });
}

std::span<const Word> behind_options(std::span<const Word> words, std::string_view with_values) {
  while (!words.empty() && words[0].text.starts_with('-')) {
    const std::string& option = words[0].text;
    const bool has_value = option.size() == 2 && with_values.contains(option[1]);
    words = words.subspan(std::min<std::size_t>(words.size(), has_value ? 2 : 1));
  }
  return words;
}

// Preparing SSH, by which mpirun would reach the workers.
bool is_for_ssh(std::string_view path) {
  return path.contains(".ssh") || path.contains("/ssh") || path.contains("sshd");
}
bool writes_last(const std::string& name) {
  constexpr auto kFileCommands = std::to_array<std::string_view>(
      {"cp", "mv", "ln", "mkdir", "chmod", "chown", "touch", "rm", "install", "sed", "truncate"});
  return std::ranges::contains(kFileCommands, name);
}

bool only_looks(std::string_view name) { return std::ranges::contains(kHarmless, name); }

// Whether these arguments are harmless: for commands of which only some are.
bool is_harmless(const std::string& name, std::span<const Word> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0].text;
  if (writes_last(name) && !arguments.empty() && is_for_ssh(arguments.back().text)) return true;
  if (name == "sed") return !has_option(arguments, "-i") && !has_option(arguments, "--in-place");
  if (name == "env") return arguments.empty();
  if (name == "sort") return !has_option(arguments, "-o");
  if (name == "printf") return !has_option(arguments, "-v");
  if (name == "find") return !has_option(arguments, "-exec") && !has_option(arguments, "-delete");
  if (name == "awk" || name == "gawk" || name == "mawk")
    return std::ranges::none_of(arguments, [](const Word& word) {
      return word.text.contains('>') || word.text.contains("system") || word.text.contains("| \"");
    });
  if (name == "kubectl") return first == "get" || first == "wait" || first == "describe";
  if (name == "service" || name == "systemctl")
    return std::ranges::any_of(arguments, [](const Word& word) { return word.text.starts_with("ssh"); });
  if (name == "tee")
    return std::ranges::all_of(arguments, [](const Word& word) { return word.text.starts_with("/dev/"); });
  if (is_mpirun(name) && is_probe(arguments)) return true;
  if (is_mpirun(name) || name.starts_with("python"))
    return arguments.size() == 1 && (first == "--version" || first == "-V" || first == "--help");
  return std::ranges::contains(kHarmless, name);
}

}  // namespace

bool is_probe(std::span<const Word> words) {
  const auto run = read_mpirun(words);
  return run && only_looks(base_name(run->program.front().text));
}

std::string assigned_name(const Word& word) {
  const auto parts = shell_assignment(word.source);
  if (!parts) return "";
  return parts->first.substr(0, name_length(parts->first));
}

std::string base_name(const std::string& word) { return word.substr(word.rfind('/') + 1); }

std::string written_file(const Redirection& redirection) {
  const std::string& target = redirection.target.text;
  if (!redirection.sign.contains('>') || target.starts_with("/dev/") || target.starts_with("/proc/") ||
      is_for_ssh(target))
    return "";
  if (redirection.sign.ends_with(">&") &&
      (target == "-" || std::ranges::all_of(target, [](unsigned char c) { return std::isdigit(c) != 0; })))
    return "";
  return target.empty() ? redirection.target.source : target;
}

Unwrapped unwrapped(std::span<const Word> words) {
  Unwrapped result;
  while (!words.empty()) {
    const std::string name = base_name(words[0].text);
    if (!assigned_name(words[0]).empty()) {
      result.assignments.push_back(words[0]);
      words = words.subspan(1);
    } else if (name == "time" || name == "exec" || name == "nohup") {
      words = behind_options(words.subspan(1), "");
    } else if (name == "nice" || name == "stdbuf") {
      words = behind_options(words.subspan(1), "n");
    } else if (name == "env" && words.size() > 1 && !words[1].text.starts_with('-')) {
      words = words.subspan(1);
    } else if (name == "timeout") {
      words = behind_options(words.subspan(1), "ks");
      if (words.empty()) break;
      result.timeout = words[0].text;
      words = words.subspan(1);
    } else {
      break;
    }
  }
  result.words = words;
  return result;
}

std::optional<Offence> Judge::offence(const Script& script) {
  for (const Pipeline& pipeline : script)
    if (auto found = offence(pipeline)) return found;
  return std::nullopt;
}

std::optional<Offence> Judge::offence(const Pipeline& pipeline) {
  for (const Command& command : pipeline.commands)
    if (auto found = offence(command)) return found;
  return std::nullopt;
}

std::optional<Offence> Judge::offence(const Command& command) {
  if (command.compound.ends_with("()")) {
    functions_[command.compound.substr(0, command.compound.size() - 2)] = offence(command.inner);
    return std::nullopt;
  }
  for (const Redirection& redirection : command.redirections)
    if (const std::string file = written_file(redirection); !file.empty() && !is_hostfile(redirection.target))
      return Offence{command.line, std::format("writes \"{}\"", file)};
  if (auto found = of_substitutions(command)) return found;
  if (command.compound.empty()) return of_simple(command);
  auto found = offence(command.inner);
  if (found && !found->what.contains(" inside ")) found->what += std::format(" inside \"{}\"", command.compound);
  return found;
}

bool Judge::is_hostfile(const Word& word) const {
  return std::ranges::contains(hostfiles, word.text) ||
         std::ranges::contains(hostfiles, variables_.value(word).value_or(word.text));
}

std::optional<Offence> Judge::of_text(const std::string& text, int line) {
  if (++depth_ > 20) return Offence{line, "nests too deeply"};
  const auto script = read_shell(text);
  auto found = script ? offence(*script) : std::optional(Offence{line, std::format("runs \"{}\"", text)});
  if (found) found->line = line;
  --depth_;
  return found;
}

std::optional<Offence> Judge::of_substitutions(const Command& command) {
  for (const Word& word : command.words)
    for (const Piece& piece : word.pieces)
      if (piece.kind == Piece::Kind::kCommand)
        if (auto found = of_text(piece.text, command.line)) return found;
  return std::nullopt;
}

std::optional<Offence> Judge::of_simple(const Command& command) {
  std::vector<Word> known;
  for (const Word& word : unwrapped(command.words).words)
    for (Word& part : variables_.filled_in(word)) known.push_back(std::move(part));
  const std::span<const Word> words = known;
  if (words.empty()) return std::nullopt;
  const std::string name = base_name(words[0].text);
  if (const auto function = functions_.find(name); function != functions_.end()) return function->second;
  const std::span<const Word> arguments = words.subspan(1);
  if (name == "ssh") {
    const std::span<const Word> host = behind_options(arguments, "BbcDEeFIiJLlmOopQRSWw");
    std::string remote;
    for (const Word& word : host.subspan(std::min<std::size_t>(host.size(), 1))) remote += word.text + " ";
    auto found = of_text(remote, command.line);
    if (found) found->what += " on other hosts";
    return found;
  }
  if (name == "trap" && arguments.size() > 1) return of_text(arguments[0].text, command.line);
  if (is_harmless(name, arguments)) return std::nullopt;
  if ((writes_last(name) || name == "tee") && !arguments.empty() && is_hostfile(arguments.back())) return std::nullopt;
  if (name == "command" && !arguments.empty() && arguments[0].text.starts_with('-')) return std::nullopt;
  return Offence{command.line, std::format("runs \"{}\"", words[0].text)};
}

bool ends_well(const Command& command) {
  if (command.compound.empty()) {
    const std::span<const Word> words = unwrapped(command.words).words;
    return !words.empty() && words[0].text == "exit" && (words.size() == 1 || words[1].text == "0");
  }
  if (command.compound == "(" || command.compound.ends_with("()")) return false;
  return std::ranges::any_of(command.inner, [](const Pipeline& pipeline) {
    return pipeline.commands.size() == 1 && ends_well(pipeline.commands.front());
  });
}

bool is_condition(const Pipeline& pipeline) {
  if (pipeline.negated) return true;
  const std::span<const Word> words = unwrapped(pipeline.commands.back().words).words;
  if (!pipeline.commands.back().compound.empty()) return pipeline.commands.back().compound == "((";
  constexpr auto kTests = std::to_array<std::string_view>({"[", "[[", "test", "false", "grep", "pgrep", "cmp", "diff"});
  return !words.empty() && std::ranges::contains(kTests, base_name(words[0].text));
}

void collect_assigned(const Command& command, std::vector<std::string>& names) {
  const Unwrapped simple = unwrapped(command.words);
  const std::string name = simple.words.empty() ? "" : simple.words[0].text;
  constexpr auto kSetters =
      std::to_array<std::string_view>({"read", "let", "export", "declare", "typeset", "readonly", "unset"});
  if ((command.compound == "for" || command.compound == "select") && !command.words.empty() &&
      !command.words[0].text.starts_with("((")) {
    names.push_back(command.words[0].text);
  } else if (command.compound == "for" || command.compound == "((" || std::ranges::contains(kSetters, name)) {
    for (const Word& word : command.words)  // each name that stands there, such as those of ((a = b))
      for (std::size_t at = 0; at < word.text.size();) {
        const std::size_t length = name_length(std::string_view(word.text).substr(at));
        if (length > 0) names.push_back(word.text.substr(at, length));
        at += std::max<std::size_t>(length, 1);
      }
  } else if (simple.words.empty()) {
    for (const Word& word : simple.assignments) names.push_back(assigned_name(word));
  }
  for (const Pipeline& pipeline : command.inner)
    for (const Command& inner : pipeline.commands) collect_assigned(inner, names);
}

}  // namespace bsp::convert
