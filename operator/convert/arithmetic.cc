#include "operator/convert/arithmetic.h"

#include <charconv>

#include "operator/convert/names.h"

namespace bsp::convert {
namespace {

using Number = std::optional<std::int64_t>;

Number whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Number(number) : std::nullopt;
}

Number combined(char sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if ((sign == '/' || sign == '%') && (b == 0 || b == -1)) return std::nullopt;
  if (sign == '/') return a / b;
  if (sign == '%') return a % b;
  const bool overflow = sign == '+'   ? __builtin_add_overflow(a, b, &result)
                        : sign == '-' ? __builtin_sub_overflow(a, b, &result)
                                      : __builtin_mul_overflow(a, b, &result);
  return overflow ? std::nullopt : Number(result);
}

class Arithmetic {
 public:
  Arithmetic(std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& value)
      : text_(text), value_(value) {}

  Number result() {
    const Number number = sum();
    return next() == '\0' && at_ == text_.size() ? number : std::nullopt;
  }

 private:
  char next() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n\"\\", at_), text_.size());  // expr's \* is *
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  Number sum() {
    Number number = product();
    while (number && (next() == '+' || next() == '-')) {
      const char sign = text_[at_++];
      const Number other = product();
      number = other ? combined(sign, *number, *other) : std::nullopt;
    }
    return number;
  }

  Number product() {
    Number number = factor();
    while (number && (next() == '*' || next() == '/' || next() == '%')) {
      const char sign = text_[at_++];
      const Number other = factor();
      number = other ? combined(sign, *number, *other) : std::nullopt;
    }
    return number;
  }

  Number factor() {
    if (next() == '(') {
      if (++depth_ > 50) return std::nullopt;
      ++at_;
      const Number number = sum();
      if (next() != ')') return std::nullopt;
      ++at_;
      --depth_;
      return number;
    }
    const bool is_variable = next() == '$';
    if (is_variable) ++at_;
    const bool in_braces = is_variable && next() == '{';
    if (in_braces) ++at_;
    const std::string_view rest = text_.substr(at_);
    std::size_t length = name_length(rest);
    const bool is_number = length == 0 && !is_variable;
    if (is_number) length = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (length == 0) return std::nullopt;
    at_ += length;
    if (in_braces && next() != '}') return std::nullopt;
    if (in_braces) ++at_;
    // A shell reads 010 as octal, so that the two would differ.
    if (is_number) return length > 1 && rest[0] == '0' ? std::nullopt : whole(rest.substr(0, length));
    const auto text = value_(rest.substr(0, length));
    return text && !(text->size() > 1 && text->starts_with('0')) ? whole(*text) : std::nullopt;
  }

  std::string_view text_;
  const std::function<std::optional<std::string>(std::string_view)>& value_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> compute(std::string_view text,
                                    const std::function<std::optional<std::string>(std::string_view)>& value) {
  return Arithmetic(text, value).result();
}

}  // namespace bsp::convert
