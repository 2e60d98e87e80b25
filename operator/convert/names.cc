#include "operator/convert/names.h"

#include <cctype>

namespace bsp::convert {

std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_'))
    ++length;
  return length > 0 && std::isdigit(static_cast<unsigned char>(text[0])) == 0 ? length : 0;
}

bool is_name(std::string_view text) { return !text.empty() && name_length(text) == text.size(); }

std::optional<std::pair<std::string, std::string>> assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

std::optional<std::pair<std::string, std::string>> shell_assignment(std::string_view text) {
  auto parts = assignment(text);
  if (!parts) return std::nullopt;
  const std::string_view name = parts->first;
  if (!is_name(name.substr(0, name.size() - name.ends_with('+')))) return std::nullopt;
  return parts;
}

bool names_variable(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    std::string_view rest = text.substr(at + 1);
    const bool is_container = rest.starts_with('(');
    if (is_container || rest.starts_with('{')) rest.remove_prefix(1);
    const std::size_t length = name_length(rest);
    if (rest.substr(0, length) == name && (!is_container || rest.substr(length).starts_with(')'))) return true;
  }
  return false;
}

}  // namespace bsp::convert
