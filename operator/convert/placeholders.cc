#include "operator/convert/placeholders.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <format>
#include <nlohmann/json.hpp>

#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

using nlohmann::json;

// Words that are plain in YAML and in a shell.
constexpr std::string_view kAction = "bspfill", kVariable = "bspname", kNumber = "bspcount";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n-");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n-") + 1 - begin);
}

// What a template does with the lines around it, by its first word.
bool opens_block(std::string_view action) {
  constexpr auto kOpening = std::to_array<std::string_view>({"if", "range", "with", "define", "block", "for"});
  return std::ranges::contains(kOpening, action.substr(0, name_length(action)));
}
bool closes_block(std::string_view action) {
  constexpr auto kClosing = std::to_array<std::string_view>({"end", "endif", "endfor"});
  return std::ranges::contains(kClosing, action.substr(0, name_length(action)));
}
bool is_else(std::string_view action) {
  const std::string_view word = action.substr(0, name_length(action));
  return word == "else" || word == "elif";
}
bool sets_or_comments(std::string_view action) {
  return action.starts_with("/*") || (action.starts_with('$') && action.contains(":=")) || action.starts_with("set ");
}

// The length of the word that the text begins with, and what place it stands for; 0 if it begins with none.
std::size_t hidden_length(std::string_view text, std::size_t* place = nullptr) {
  for (const std::string_view kind : {kAction, kVariable, kNumber}) {
    if (!text.starts_with(kind)) continue;
    std::size_t number = 0;
    const char* begin = text.data() + kind.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
    if (error != std::errc() || end == text.data() + text.size() || *end != 'z') return 0;
    if (place != nullptr) *place = number;
    return static_cast<std::size_t>(end - text.data()) + 1;
  }
  return 0;
}

// The length of the placeholder that the text begins with.
std::size_t variable_length(std::string_view text) {
  if (text.starts_with("${")) {
    const std::size_t length = name_length(text.substr(2));
    return length > 0 && text.substr(2 + length).starts_with('}') ? length + 3 : 0;
  }
  const std::size_t length = text.starts_with('$') ? name_length(text.substr(1)) : 0;
  return length > 0 ? length + 1 : 0;
}
std::size_t marked_length(std::string_view text) {  // %NAME%, @NAME@, JOB_NAME_PLACEHOLDER
  if (text.empty()) return 0;
  if (text[0] != '%' && text[0] != '@') {
    const std::size_t upper = std::min(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), text.size());
    return text.substr(0, upper).ends_with("PLACEHOLDER") ? upper : 0;
  }
  const std::size_t length = name_length(text.substr(1));
  return length > 0 && text.substr(1 + length).starts_with(text[0]) ? length + 2 : 0;
}
std::size_t placeholder_length(std::string_view text) {
  return std::max({hidden_length(text), variable_length(text), marked_length(text)});
}

}  // namespace

bool is_placeholder(std::string_view text) { return !text.empty() && placeholder_length(text) == text.size(); }

std::vector<std::string> placeholders_in(std::string_view text, bool is_script) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t length =
        is_script ? std::max(hidden_length(rest), marked_length(rest)) : placeholder_length(rest);
    if (length > 0) all.emplace_back(rest.substr(0, length));
    at += std::max<std::size_t>(length, 1);
  }
  return all;
}

std::string without_placeholders(std::string_view text, std::string_view by) {
  std::string all;
  while (!text.empty()) {
    const std::size_t length = placeholder_length(text);
    all += length > 0 ? by : text.substr(0, 1);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return all;
}

std::string Placeholders::word_for(Hidden hidden, std::string_view kind) {
  // The same text is the same word, so that two images, say, compare equal.
  const auto known = std::ranges::find_if(
      hidden_, [&](const Hidden& other) { return other.text == hidden.text && other.quoted == hidden.quoted; });
  const auto place = known - hidden_.begin();
  if (known == hidden_.end()) hidden_.push_back(std::move(hidden));
  return std::format("{}{}z", kind, place);  // z: of bspfill1 and bspfill10 none begins with the other
}

std::string Placeholders::number(const std::string& text) { return word_for({.text = show(text)}, kNumber); }

std::string Placeholders::show(std::string_view text) const {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t place = hidden_.size();
    const std::size_t length = hidden_length(rest, &place);
    if (place >= hidden_.size()) {
      all += text[at++];
      continue;
    }
    const bool is_value = (all.ends_with(": ") || all.ends_with("- ")) && rest.substr(length).starts_with('\n');
    const char* quote = hidden_[place].quoted && is_value ? "\"" : "";
    all += quote + hidden_[place].text + quote;
    at += length;
  }
  return all;
}

// Lines keep their numbers. What a condition encloses is kept, except behind its else.
std::string Placeholders::hide_actions(std::string_view text, std::vector<Note>& notes) {
  std::string all;
  std::vector<bool> in_else;  // of the blocks that are open
  int line = 1;
  const auto is_left_out = [&] { return std::ranges::contains(in_else, true); };
  for (std::size_t at = 0; at < text.size();) {
    const bool is_action = text.substr(at).starts_with("{{"), is_block = text.substr(at).starts_with("{%");
    const std::size_t end = is_action || is_block ? text.find(is_action ? "}}" : "%}", at + 2) : std::string_view::npos;
    if (end == std::string_view::npos) {
      line += text[at] == '\n' ? 1 : 0;
      if (!is_left_out() || text[at] == '\n') all += text[at];
      ++at;
      continue;
    }
    const std::string whole(text.substr(at, end + 2 - at));
    const std::string_view action = trimmed(text.substr(at + 2, end - at - 2));
    const std::size_t begin_of_line = text.rfind('\n', at) + 1,
                      end_of_line = std::min(text.find('\n', end), text.size());
    const bool is_alone = trimmed(text.substr(begin_of_line, at - begin_of_line)).empty() &&
                          !text.substr(begin_of_line, at - begin_of_line).contains('-') &&
                          trimmed(text.substr(end + 2, end_of_line - end - 2)).empty();
    if (opens_block(action)) {
      in_else.push_back(false);
      if (!is_left_out())
        notes.push_back({line, std::format("{} is not carried over: what it encloses is kept in any case", whole)});
    } else if (is_else(action) && !in_else.empty()) {
      in_else.back() = true;
      notes.push_back({line, std::format("{} is not carried over, nor what follows it", whole)});
    } else if (closes_block(action)) {
      if (!in_else.empty()) in_else.pop_back();
    } else if (is_block || sets_or_comments(action) || is_left_out()) {
    } else if (is_alone) {
      notes.push_back(
          {line, std::format("{} is not carried over: it inserts lines of its own; write them into the BSPJob, "
                             "or convert what `helm template` prints",
                             whole)});
    } else {
      const char before = at > 0 ? text[at - 1] : ' ';
      const bool is_quoted = (before == '"' || before == '\'') && text.substr(end + 2).starts_with(before);
      all += word_for({.text = whole, .quoted = is_quoted}, kAction);
    }
    for (const char c : whole)
      if (c == '\n') {
        ++line;
        all += c;
      }
    at = end + 2;
  }
  return all;
}

std::string Placeholders::hide_variables(std::string_view text) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t length =
        std::max(rest.starts_with("${") ? variable_length(rest) : std::size_t{0}, marked_length(rest));
    if (length > 0)
      all += word_for({.text = std::string(rest.substr(0, length))}, kVariable);
    else
      all += text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return all;
}

void Placeholders::show_variables(json& value) const {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    for (std::size_t at = 0; (at = text.find(kVariable, at)) != std::string::npos; ++at) {
      std::size_t place = hidden_.size();
      const std::size_t length = hidden_length(std::string_view(text).substr(at), &place);
      if (place < hidden_.size()) text.replace(at, length, hidden_[place].text);
    }
    value = text;
  } else if (value.is_structured()) {
    for (json& part : value) show_variables(part);
  }
}

std::expected<std::vector<json>, YamlError> Placeholders::read(std::string_view text, std::vector<YamlLines>* lines,
                                                               std::vector<Note>& notes) {
  const std::string plain = hide_actions(text, notes);
  auto documents = read_yaml(plain, lines);
  if (documents) return documents;
  if (lines != nullptr) lines->clear();
  auto again =
      read_yaml(hide_variables(plain), lines);  // ${NAME} can't stand in [ ] or { } of YAML, nor %NAME% anywhere
  if (!again) return documents;
  for (json& document : *again) show_variables(document);
  return again;
}

}  // namespace bsp::convert
