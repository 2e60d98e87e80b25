#include "operator/convert/shell.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <initializer_list>
#include <map>

#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

constexpr std::string_view kBlank = " \t\r", kControl = "\n;&|()<>";
constexpr int kDeepest = 50;
constexpr std::size_t kLongest = 100'000, kLongestBraces = 1'000;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Script> script() {
    BSP_TRY(Script all, list({}));
    if (at_ < text_.size()) return unexpected();
    return all;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool follows(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!follows(what)) return false;
    at_ += what.size();
    return true;
  }
  [[nodiscard]] int line() {
    const std::size_t end = std::min(at_, text_.size());
    for (; counted_ < end; ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view what) {
    return fail(ErrorCode::kInvalid, std::format("{} (line {})", what, line()));
  }
  [[nodiscard]] std::unexpected<Error> unexpected() {
    return at_end() ? wrong("ends too early") : wrong(std::format("has \"{}\" where a shell expects none", token()));
  }

  // The characters up to the next blank or control operator; reserved words are recognised by them.
  [[nodiscard]] std::string_view bare() const {
    const std::string_view rest = text_.substr(at_);
    return rest.substr(0, std::min(rest.find_first_of(" \t\r\n;&|()<>"), rest.size()));
  }
  [[nodiscard]] std::string_view token() const { return bare().empty() ? text_.substr(at_, 1) : bare(); }
  bool take_word(std::string_view word) {
    if (bare() != word) return false;
    at_ += word.size();
    return true;
  }

  // Blanks, comments and continued lines; ends of lines and commands, too, if `ends`.
  void skip(bool ends) {
    for (; !at_end(); ++at_) {
      if (follows("\\\n") || follows("\\\r\n")) {
        at_ += peek(1) == '\r' ? 2 : 1;
      } else if (peek() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_end()) return;
        --at_;
      } else if (ends && peek() == '\n') {
        if (const auto body = bodies_.find(at_); body != bodies_.end()) at_ = body->second - 1;
      } else if (ends ? peek() == ';' && peek(1) != ';' && peek(1) != '&' : false) {
        continue;
      } else if (!kBlank.contains(peek())) {
        return;
      }
    }
  }

  Result<Script> list(Ends ends) {
    if (++depth_ > kDeepest) return wrong("is nested too deeply");
    Script all;
    for (;;) {
      skip(true);
      const bool ended = std::ranges::any_of(
          ends, [&](std::string_view end) { return end == ")" || end == ";;" ? follows(end) : bare() == end; });
      if (at_end() || ended || peek() == ')' || peek() == ';') break;
      BSP_TRY(Pipeline next, pipeline());
      skip(false);
      if (take("&&"))
        next.next = "&&";
      else if (take("||"))
        next.next = "||";
      else if (take("&"))
        next.next = "&";
      all.push_back(std::move(next));
    }
    --depth_;
    return all;
  }

  Result<Pipeline> pipeline() {
    Pipeline result;
    result.negated = take_word("!");
    for (;;) {
      skip(!result.commands.empty());
      BSP_TRY(Command next, command());
      result.commands.push_back(std::move(next));
      skip(false);
      if (follows("||") || !take("|")) return result;
      take("&");  // |&
    }
  }

  Result<void> expect(std::string_view word) {
    skip(true);
    if (!take_word(word)) return at_end() ? wrong(std::format("ends without \"{}\"", word)) : unexpected();
    return {};
  }
  Result<void> add_list(Command& command, Ends ends) {
    BSP_TRY(const Script part, list(ends));
    command.inner.insert(command.inner.end(), part.begin(), part.end());
    return {};
  }

  Result<Command> command() {
    Command result;
    result.line = line();
    const std::string_view word = bare();
    for (const std::string_view reserved : {"then", "else", "elif", "fi", "do", "done", "esac", "}", "in"})
      if (word == reserved) return unexpected();
    if (follows("((") || follows("(") || word == "{" || word == "if" || word == "while" || word == "until" ||
        word == "for" || word == "select" || word == "case") {
      BSP_CHECK_OK(compound(result));
    } else if (word == "function" || is_function()) {
      BSP_CHECK_OK(function(result));
    } else {
      BSP_CHECK_OK(simple(result));
      if (result.words.empty() && result.redirections.empty()) return unexpected();
      return result;
    }
    for (skip(false); is_redirection(); skip(false)) BSP_CHECK_OK(redirection(result));
    return result;
  }

  Result<void> compound(Command& result) {
    if (follows("((")) {
      result.compound = "((";
      const std::size_t begin = at_;
      BSP_CHECK_OK(balanced('(', ')'));
      result.words.push_back(plain(text_.substr(begin, at_ - begin)));
      return {};
    }
    if (take("(")) {
      result.compound = "(";
      BSP_CHECK_OK(add_list(result, {")"}));
      return take(")") ? Result<void>{} : unexpected();
    }
    result.compound = bare();
    at_ += result.compound.size();
    if (result.compound == "{") {
      BSP_CHECK_OK(add_list(result, {"}"}));
      return expect("}");
    }
    if (result.compound == "if") return branches(result);
    if (result.compound == "case") return cases(result);
    if (result.compound == "for" || result.compound == "select")
      BSP_CHECK_OK(loop_head(result));
    else
      BSP_CHECK_OK(add_list(result, {"do"}));
    BSP_CHECK_OK(expect("do"));
    BSP_CHECK_OK(add_list(result, {"done"}));
    return expect("done");
  }

  Result<void> branches(Command& result) {
    for (;;) {
      BSP_CHECK_OK(add_list(result, {"then"}));
      BSP_CHECK_OK(expect("then"));
      BSP_CHECK_OK(add_list(result, {"elif", "else", "fi"}));
      if (take_word("elif")) continue;
      if (take_word("else")) BSP_CHECK_OK(add_list(result, {"fi"}));
      return expect("fi");
    }
  }

  Result<void> loop_head(Command& result) {
    skip(false);
    if (follows("((")) {
      const std::size_t begin = at_;
      BSP_CHECK_OK(balanced('(', ')'));
      result.words.push_back(plain(text_.substr(begin, at_ - begin)));
      return {};
    }
    for (skip(false); !at_end() && !kControl.contains(peek()); skip(false)) {
      BSP_TRY(Word next, word());
      result.words.push_back(std::move(next));
    }
    return {};
  }

  Result<void> cases(Command& result) {
    skip(false);
    BSP_TRY(Word subject, word());
    result.words.push_back(std::move(subject));
    BSP_CHECK_OK(expect("in"));
    for (;;) {
      skip(true);
      if (take_word("esac")) return {};
      take("(");
      const std::size_t end = text_.find(')', at_);
      if (end == std::string_view::npos) return wrong("ends without \"esac\"");
      at_ = end + 1;
      BSP_CHECK_OK(add_list(result, {";;", "esac"}));
      if (!take(";;")) take(";&");
    }
  }

  [[nodiscard]] bool is_function() const {
    const std::string_view name = bare();
    const std::size_t after = text_.find_first_not_of(kBlank, at_ + name.size());
    return !name.empty() && after != std::string_view::npos && name_length(name) == name.size() &&
           text_.substr(after).starts_with("()");
  }
  Result<void> function(Command& result) {
    if (take_word("function")) skip(false);
    result.compound = std::string(bare()) + "()";
    at_ += bare().size();
    skip(false);
    take("()");
    skip(true);
    if (++depth_ > kDeepest) return wrong("is nested too deeply");
    BSP_TRY(Command body, command());
    --depth_;
    result.inner.push_back({.commands = {std::move(body)}});
    return {};
  }

  Result<void> simple(Command& result) {
    const bool is_test = bare() == "[[";  // its < && ( aren't operators of the shell
    for (skip(false); !at_end(); skip(is_test)) {
      if (is_test && kControl.contains(peek())) {
        result.words.push_back(plain(text_.substr(at_++, 1)));
      } else if (!is_test && is_redirection()) {
        BSP_CHECK_OK(redirection(result));
      } else if (!is_substitution() && kControl.contains(peek())) {
        break;
      } else {
        BSP_TRY(Word next, word());
        result.words.push_back(std::move(next));
        if (is_test && result.words.back().source == "]]") break;
      }
    }
    return {};
  }

  [[nodiscard]] bool is_substitution() const { return follows("<(") || follows(">("); }
  [[nodiscard]] bool is_redirection() const {
    std::size_t digits = 0;
    while (std::isdigit(static_cast<unsigned char>(peek(digits))) != 0) ++digits;
    const char sign = peek(digits);
    return (sign == '<' || sign == '>' || (sign == '&' && digits == 0 && peek(1) == '>')) &&
           !(digits == 0 && is_substitution());
  }
  Result<void> redirection(Command& result) {
    Redirection next;
    const std::size_t begin = at_;
    at_ = text_.find_first_of("<>", at_);
    for (const std::string_view sign : {"<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"})
      if (take(sign)) break;
    next.sign = text_.substr(begin, at_ - begin);
    if (next.sign.starts_with('&') && take(">")) next.sign += '>';
    skip(false);
    if (at_end() || (kControl.contains(peek()) && !is_substitution())) return unexpected();
    BSP_TRY(next.target, word());
    if (next.sign.ends_with("<<") || next.sign.ends_with("<<-")) note_body(next);
    result.redirections.push_back(std::move(next));
    return {};
  }

  // A here-document: its lines begin behind this one.
  void note_body(const Redirection& document) {
    const std::size_t line_end = text_.find('\n', at_);
    if (line_end == std::string_view::npos) return;
    std::size_t& behind = bodies_.try_emplace(line_end, line_end + 1).first->second;
    while (behind < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', behind), text_.size());
      std::string_view body_line = text_.substr(behind, end - behind);
      if (document.sign.ends_with('-'))
        body_line.remove_prefix(std::min(body_line.find_first_not_of('\t'), body_line.size()));
      behind = std::min(end + 1, text_.size());
      if (body_line == document.target.text) return;
    }
  }

  // Behind the bracket that closes the one at the current place.
  Result<void> balanced(char opens, char closes) {
    const std::size_t begin = at_;
    int open = 0;
    for (; !at_end(); ++at_) {
      const char c = peek();
      if (c == '\\') {
        ++at_;
      } else if (c == '\'' || c == '"') {
        while (++at_ < text_.size() && peek() != c)
          if (c == '"' && peek() == '\\') ++at_;
      } else if (c == opens) {
        ++open;
      } else if (c == closes && --open == 0) {
        ++at_;
        return {};
      }
    }
    at_ = begin;
    return wrong(std::format("has a {} that nothing closes", opens));
  }

  static Word plain(std::string_view text) {
    const std::string copy(text);
    return {.text = copy, .source = copy, .expanded = false, .pieces = {{.text = copy}}};
  }
  static void add_text(Word& word, std::string_view text, bool is_quoted) {
    word.text += text;
    if (!word.pieces.empty() && word.pieces.back().kind == Piece::Kind::kText && word.pieces.back().quoted == is_quoted)
      word.pieces.back().text += text;
    else
      word.pieces.push_back({.text = std::string(text), .quoted = is_quoted});
  }
  void add_expansion(Word& word, Piece::Kind kind, std::string_view enclosed, std::size_t begin, bool is_quoted) const {
    word.pieces.push_back({.kind = kind, .text = std::string(enclosed), .quoted = is_quoted});
    word.text += text_.substr(begin, at_ - begin);
    word.expanded = true;
  }

  Result<void> expansion(Word& word, bool is_quoted) {
    const std::size_t begin = at_++;
    using Kind = Piece::Kind;
    if (peek() == '(') {
      const bool arithmetic = peek(1) == '(';
      BSP_CHECK_OK(balanced('(', ')'));
      const std::string_view inner = text_.substr(begin + 2, at_ - begin - 3);
      if (arithmetic && inner.ends_with(')'))
        add_expansion(word, Kind::kArithmetic, inner.substr(1, inner.size() - 2), begin, is_quoted);
      else
        add_expansion(word, Kind::kCommand, inner, begin, is_quoted);
    } else if (peek() == '{') {
      BSP_CHECK_OK(balanced('{', '}'));
      const std::string_view inner = text_.substr(begin + 2, at_ - begin - 3);
      const bool is_name = !inner.empty() && name_length(inner) == inner.size();
      add_expansion(word, is_name ? Kind::kVariable : Kind::kParameter, inner, begin, is_quoted);
    } else if (!is_quoted && peek() == '\'') {
      const std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) return wrong("has a ' that nothing closes");
      at_ = end + 1;
      add_expansion(word, Kind::kParameter, "'", begin, is_quoted);
    } else {
      std::size_t length = name_length(text_.substr(at_));
      if (length == 0 &&
          (std::isdigit(static_cast<unsigned char>(peek())) != 0 || std::string_view("@*#?$!-").contains(peek())))
        length = at_end() ? 0 : 1;
      at_ += length;
      if (length == 0)
        add_text(word, "$", is_quoted);
      else
        add_expansion(word, Kind::kVariable, text_.substr(begin + 1, length), begin, is_quoted);
    }
    return {};
  }

  Result<void> backquoted(Word& word, bool is_quoted) {
    const std::size_t begin = at_++;
    while (!at_end() && peek() != '`') at_ += peek() == '\\' ? 2 : 1;
    if (at_end()) return wrong("has a ` that nothing closes");
    ++at_;
    add_expansion(word, Piece::Kind::kCommand, text_.substr(begin + 1, at_ - begin - 2), begin, is_quoted);
    return {};
  }

  Result<void> double_quoted(Word& word) {
    add_text(word, "", true);
    for (++at_; peek() != '"';) {
      if (at_end()) return wrong("has a \" that nothing closes");
      if (peek() == '$') {
        BSP_CHECK_OK(expansion(word, true));
      } else if (peek() == '`') {
        BSP_CHECK_OK(backquoted(word, true));
      } else if (peek() == '\\' && std::string_view("$`\"\\\n").contains(peek(1)) && at_ + 1 < text_.size()) {
        if (peek(1) != '\n') add_text(word, text_.substr(at_ + 1, 1), true);
        at_ += 2;
      } else {
        add_text(word, text_.substr(at_++, 1), true);
      }
    }
    ++at_;
    return {};
  }

  // {a,b} and {1..3} make words of their own in bash.
  [[nodiscard]] bool is_brace() const {
    const std::string_view rest = text_.substr(at_, kLongestBraces);
    const std::size_t end = rest.find_first_of(" \t\r\n;&|()<>}");
    const std::string_view inside = rest.substr(0, std::min(end, rest.size()));
    return inside.size() < rest.size() && rest[inside.size()] == '}' && (inside.contains(',') || inside.contains(".."));
  }

  Result<Word> word() {
    Word word;
    const std::size_t begin = at_;
    while (!at_end() && !kBlank.contains(peek()) &&
           (!kControl.contains(peek()) || (at_ == begin && is_substitution()))) {
      const char c = peek();
      if (c == '\'') {
        const std::size_t end = text_.find('\'', at_ + 1);
        if (end == std::string_view::npos) return wrong("has a ' that nothing closes");
        add_text(word, text_.substr(at_ + 1, end - at_ - 1), true);
        at_ = end + 1;
      } else if (c == '"') {
        BSP_CHECK_OK(double_quoted(word));
      } else if (c == '$') {
        BSP_CHECK_OK(expansion(word, false));
      } else if (c == '`') {
        BSP_CHECK_OK(backquoted(word, false));
      } else if (c == '<' || c == '>') {
        const std::size_t from = at_++;
        BSP_CHECK_OK(balanced('(', ')'));
        add_expansion(word, Piece::Kind::kCommand, text_.substr(from + 2, at_ - from - 3), from, false);
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        if (peek(1) != '\n') add_text(word, text_.substr(at_ + 1, 1), true);
        at_ += 2;
      } else if (std::string_view("*?[").contains(c) || (c == '~' && at_ == begin) || (c == '{' && is_brace())) {
        ++at_;
        add_expansion(word, Piece::Kind::kPattern, "", at_ - 1, false);
      } else {
        add_text(word, text_.substr(at_++, 1), false);
        if (c == '=' && peek() == '(' && shell_assignment(word.text)) {  // an array
          const std::size_t from = at_;
          BSP_CHECK_OK(balanced('(', ')'));
          add_expansion(word, Piece::Kind::kParameter, "(", from, false);
        }
      }
    }
    word.source = text_.substr(begin, at_ - begin);
    return word;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0, line_ = 1;
  std::size_t counted_ = 0;                    // up to where line_ counts
  std::map<std::size_t, std::size_t> bodies_;  // of here-documents: from the end of a line to behind them
};

}  // namespace

Result<Script> read_shell(std::string_view text) {
  if (text.size() > kLongest) return fail(ErrorCode::kInvalid, std::format("has more than {} bytes", kLongest));
  return Parser(text).script();
}

std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "_-./=:,%+@^";
  if (!text.empty() && std::ranges::all_of(text, [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.contains(c);
      }))
    return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace bsp::convert
