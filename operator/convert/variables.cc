#include "operator/convert/variables.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <ranges>

#include "operator/convert/names.h"
#include "operator/convert/placeholders.h"

namespace bsp::convert {
namespace {

using Kind = Piece::Kind;

constexpr std::size_t kLongestValue = 100'000;  // A=$A$A doubles it

// In every process, or on every host, another one.
bool is_special(std::string_view name) {
  constexpr auto kSpecial = std::to_array<std::string_view>(
      {"RANDOM", "HOSTNAME", "PPID", "BASHPID", "SECONDS", "EPOCHSECONDS", "LINENO", "EUID", "UID"});
  return !is_name(name) || std::ranges::contains(kSpecial, name);
}

// Numbers and variables with + - * / between them, as launchers count their ranks. nullopt for more, and where a shell would differ:
// it reads 010 as octal.
std::optional<std::int64_t> compute(std::string_view text,
                                    const std::function<std::optional<std::string>(std::string_view)>& value) {
  std::string rest;
  for (const char c : text)
    if (!std::string_view(" \t\r\n\"\\${}").contains(c)) rest += c;  // $((N)) is N, $((${N})), too; expr's \* is *
  std::int64_t sum = 0, product = 1;
  char before = '*';
  bool is_negative = false, is_wrong = rest.empty();
  for (std::size_t at = 0; !is_wrong;) {
    const std::string_view here = std::string_view(rest).substr(at);
    const std::size_t length = std::min(here.find_first_of("+-*/"), here.size());
    const std::string word(here.substr(0, length));
    const auto known = is_name(word) ? value(word) : std::optional(word);
    std::int64_t number = 0;
    is_wrong =
        !known || known->empty() || (known->size() > 1 && known->starts_with('0')) ||
        std::from_chars(known->data(), known->data() + known->size(), number).ptr != known->data() + known->size() ||
        number < 0 || (before == '/' ? number == 0 : __builtin_mul_overflow(product, number, &product));
    if (!is_wrong && before == '/') product /= number;
    before = length < here.size() ? here[length] : '\0';
    if (!is_wrong && before != '*' && before != '/') {
      is_wrong = __builtin_add_overflow(sum, is_negative ? -product : product, &sum);
      is_negative = before == '-';
      product = 1;
      if (before == '\0') break;
      before = '*';
    }
    at += length + 1;
  }
  return is_wrong ? std::nullopt : std::optional(sum);
}

Word literal(const std::string& text) {
  return {.text = text, .source = quoted(text), .expanded = false, .pieces = {{.text = text}}};
}

// The text between blanks; a value can't be divided here if a shell would look for files.
std::optional<std::vector<std::string>> divided_value(const std::string& text) {
  if (text.find_first_of("*?[") != std::string::npos) return std::nullopt;
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) != 0)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// Whether the command prints a line for each host of a hostfile, whose lines are different hosts.
bool keeps_lines(std::string_view command, std::string_view arguments) {
  return command == "cat" || command == "cut" || command == "sort" || command == "uniq" ||
         (command == "awk" && arguments == "{print$1}");
}
bool counts_lines(std::string_view command, std::string_view arguments, bool names_file) {
  if (command == "wc") return !names_file && (arguments == "-l" || arguments == "--lines");
  if (command == "grep") return arguments == "-c" || arguments == "-c." || arguments == "-c^" || arguments == "-cslots";
  return (command == "sed" && arguments == "-n$=") || (command == "awk" && arguments == "END{printNR}");
}

// The name that ${...} begins with.
std::string_view parameter_name(const Piece& piece) {
  const std::string_view text = std::string_view(piece.text).substr(piece.text.starts_with('#') ? 1 : 0);
  return text.substr(0, name_length(text));
}

}  // namespace

std::optional<std::string> Variables::value(std::string_view name) const {
  if (const auto known = script.find(name); known != script.end()) return known->second.text;
  if (const auto known = environment_.find(std::string(name)); known != environment_.end()) return known->second;
  if (name == "OMPI_MCA_orte_default_hostfile" || name == "I_MPI_HYDRA_HOST_FILE" || name == "HYDRA_HOST_FILE")
    return "/etc/mpi/hostfile";
  return std::nullopt;
}

std::optional<std::string> Variables::value(const Piece& piece) const {
  switch (piece.kind) {
    case Kind::kText:
      return piece.text;
    case Kind::kVariable:
      return value(std::string_view(piece.text));
    case Kind::kParameter: {
      const std::string_view name = parameter_name(piece), rest = std::string_view(piece.text).substr(name.size());
      const auto known = value(name);
      if (!rest.starts_with(":-") || !known || known->empty()) return std::nullopt;
      return known;
    }
    case Kind::kArithmetic: {
      const auto number = compute(piece.text, [this](std::string_view name) { return value(name); });
      return number ? std::optional(std::to_string(*number)) : std::nullopt;
    }
    case Kind::kCommand:
      return output(piece.text);
    case Kind::kPattern:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> Variables::value(const Word& word) const {
  if (word.pieces.empty()) return word.text;
  std::string all;
  for (const Piece& piece : word.pieces) {
    const auto part = value(piece);
    if (!part || all.size() + part->size() > kLongestValue) return std::nullopt;
    all += *part;
  }
  return all;
}

std::vector<Word> Variables::filled_in(const Word& word) const {
  if (!word.expanded) return {word};
  std::vector<std::string> parts(1);
  std::size_t length = 0;
  bool any = false;  // an empty value makes no word, but "" does
  for (const Piece& piece : word.pieces) {
    const auto part = value(piece);
    if (!part || (length += part->size()) > kLongestValue) return {word};
    const bool is_whole = piece.quoted || piece.kind == Kind::kText;
    const auto divided = is_whole ? std::vector{*part} : divided_value(*part);
    if (!divided || (!is_whole && script.contains("IFS"))) return {word};
    any = any || piece.quoted || !part->empty();
    parts.back() += divided->front();
    parts.insert(parts.end(), divided->begin() + 1, divided->end());
  }
  std::vector<Word> words;
  for (const std::string& part : parts)
    if (!part.empty() || (any && parts.size() == 1)) words.push_back(literal(part));
  return words;
}

std::vector<std::string> Variables::used(const Word& word) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : script)
    if (std::ranges::any_of(word.pieces, [&](const Piece& piece) {
          return piece.kind != Kind::kText &&
                 (piece.kind == Kind::kVariable ? piece.text == name
                                                : parameter_name(piece) == name || names_variable(piece.text, name) ||
                                                      (piece.kind == Kind::kArithmetic && piece.text.contains(name)));
        }))
      names.push_back(name);
  return names;
}

std::string Variables::launchers_own(const Word& word) const {
  for (const Piece& piece : word.pieces) {
    if (value(piece)) continue;
    if (piece.kind == Kind::kCommand && !environment_.contains(piece.text)) return "$(" + piece.text + ")";
    if (piece.kind == Kind::kParameter && piece.text == "(") return "an array";
    if (piece.kind == Kind::kVariable && is_special(piece.text) && !environment_.contains(piece.text))
      return "$" + piece.text;
    if (piece.kind == Kind::kParameter && piece.text != "'" && is_special(parameter_name(piece)))
      return "${" + piece.text + "}";
  }
  for (const std::string& name : used(word))
    if (script.at(name).computed) return "$" + name;
  return "";
}

bool is_hostfile_of_operator(std::string_view path) {
  return path == "/etc/mpi/hostfile" || (path.starts_with("/etc/volcano/") && path.ends_with(".host"));
}

bool Variables::lists_hosts(const std::string& text) const {
  constexpr auto kFilters = std::to_array<std::string_view>(
      {"cat", "tr", "paste", "sed", "awk", "cut", "sort", "uniq", "head", "xargs", "echo"});
  const auto read = read_shell(text);
  if (!read || read->size() != 1) return false;
  bool from_hostfile = false;
  for (const Command& command : read->front().commands) {
    if (command.words.empty() || !std::ranges::contains(kFilters, command.words[0].text)) return false;
    for (const Word& word : command.words)
      from_hostfile = from_hostfile || is_hostfile_of_operator(value(word).value_or(""));
    for (const Redirection& redirection : command.redirections)
      from_hostfile = from_hostfile || is_hostfile_of_operator(value(redirection.target).value_or(""));
  }
  return from_hostfile;
}

bool Variables::is_host_list(const Word& word) const {
  const Piece* only = nullptr;
  for (const Piece& piece : word.pieces)
    if (piece.kind != Kind::kText || !piece.text.empty()) {
      if (only != nullptr) return false;
      only = &piece;
    }
  if (only == nullptr) return false;
  if (only->kind == Kind::kCommand) return lists_hosts(only->text);
  if (only->kind != Kind::kVariable) return false;
  const auto known = script.find(only->text);
  return known != script.end() ? known->second.hosts : only->text == "MPI_HOST";  // of Volcano's plugin
}

bool Variables::is_placeholder(const Word& word) const {
  if (convert::is_placeholder(word.text) && !word.expanded) return true;
  const bool is_one = word.pieces.size() == 1 || (word.pieces.size() == 2 && word.pieces[0].text.empty());
  const Piece* piece = is_one ? &word.pieces.back() : nullptr;
  return piece != nullptr && piece->kind == Kind::kVariable && !script.contains(piece->text) &&
         !environment_.contains(piece->text) && !is_special(piece->text);
}

// $(NAME) is the container's, if it has the variable. Else known are expr, and the number of the hostfile's lines.
std::optional<std::string> Variables::output(const std::string& text) const {
  if (const auto known = environment_.find(text); known != environment_.end()) return known->second;
  if (hosts_ == 0) return std::nullopt;
  const auto read = read_shell(text);
  if (!read || read->size() != 1) return std::nullopt;
  const std::vector<Command>& commands = read->front().commands;
  if (!std::ranges::all_of(commands, [](const Command& c) { return c.compound.empty() && !c.words.empty(); }))
    return std::nullopt;
  if (commands.size() == 1 && commands[0].words[0].text == "expr" && commands[0].redirections.empty()) {
    std::string sum;
    for (const Word& word : commands[0].words | std::views::drop(1)) sum += word.text + " ";
    const auto number = compute(sum, [this](std::string_view name) { return value(name); });
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::vector<Word> words = commands[i].words;
    const std::vector<Redirection>& redirections = commands[i].redirections;
    const bool is_input = redirections.size() == 1 && redirections[0].sign == "<";
    if (!redirections.empty() && !is_input) return std::nullopt;
    if (i == 0) {
      const Word file = is_input ? redirections[0].target : words.back();
      if (!is_input) words.pop_back();
      if (words.empty() || !is_hostfile_of_operator(value(file).value_or(""))) return std::nullopt;
    } else if (is_input) {
      return std::nullopt;
    }
    std::string arguments;
    for (const Word& word : words | std::views::drop(1)) arguments += word.text;
    std::erase_if(arguments, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
    const bool names_file = i == 0 && !is_input;  // wc -l FILE prints its name, too
    const std::string& name = words[0].text;
    if (i + 1 < commands.size() ? !keeps_lines(name, arguments) : !counts_lines(name, arguments, names_file))
      return std::nullopt;
  }
  return std::to_string(hosts_);
}

}  // namespace bsp::convert
