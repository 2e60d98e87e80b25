#include "operator/convert/shell_words.h"

#include <format>

namespace bsp::convert {
namespace {

constexpr std::string_view kControl = "|&;<>()";
constexpr std::string_view kExpanded = "$`*?[~";

class Reader {
 public:
  explicit Reader(std::string_view line) : line_(line) {}

  Result<std::vector<std::vector<Word>>> commands() {
    std::vector<std::vector<Word>> all(1);
    while (skip_blanks(all)) {
      BSP_TRY(Word word, next());
      all.back().push_back(std::move(word));
    }
    if (!wrong_.empty()) return fail(ErrorCode::kInvalid, wrong_);
    std::erase_if(all, [](const auto& command) { return command.empty() || command.front().text == "set"; });
    return all;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ >= line_.size(); }

  // False at the end, or at something that isn't a word.
  bool skip_blanks(std::vector<std::vector<Word>>& all) {
    for (; !at_end(); ++at_) {
      const char c = line_[at_];
      if (c == '\n' || c == ';') {
        all.emplace_back();
      } else if (line_.substr(at_).starts_with("\\\n")) {
        ++at_;
      } else if (c == '#') {
        while (at_ + 1 < line_.size() && line_[at_ + 1] != '\n') ++at_;
      } else if (kControl.contains(c)) {
        wrong_ = std::format("has \"{}\" in it", line_.substr(at_, line_.substr(at_).starts_with("&&") ? 2 : 1));
        return false;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return true;
      }
    }
    return false;
  }

  Result<Word> next() {
    Word word;
    const std::size_t begin = at_;
    char quote = 0;
    for (; !at_end(); ++at_) {
      const char c = line_[at_];
      if (quote == 0 && (std::string_view(" \t\r\n").contains(c) || kControl.contains(c))) break;
      if (c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == '\\' && quote != '\'' && at_ + 1 < line_.size()) {
        if (line_[++at_] != '\n') word.text += line_[at_];
      } else {
        const bool shell_reads_it = quote == 0 ? kExpanded.contains(c) : quote == '"' && (c == '$' || c == '`');
        word.expanded = word.expanded || shell_reads_it;
        word.text += c;
      }
    }
    if (quote != 0) return fail(ErrorCode::kInvalid, std::format("has a {} that nothing closes", quote));
    word.source = line_.substr(begin, at_ - begin);
    return word;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::string wrong_;
};

}  // namespace

Result<std::vector<Word>> shell_words(std::string_view line) {
  BSP_TRY(auto commands, Reader(line).commands());
  if (commands.empty()) return fail(ErrorCode::kInvalid, "is empty");
  if (commands.size() > 1)
    return fail(ErrorCode::kInvalid, std::format("runs \"{}\" and \"{}\"", commands[0][0].text, commands[1][0].text));
  std::vector<Word> words = std::move(commands.front());
  if (words.front().text == "exec") words.erase(words.begin());
  if (words.empty()) return fail(ErrorCode::kInvalid, "is empty");
  return words;
}

}  // namespace bsp::convert
