#include <algorithm>
#include <cctype>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/yaml.h"

namespace bsp {
namespace {

using nlohmann::json;

// Words that YAML 1.1 readers (kubectl's among them) take for booleans.
bool is_old_bool(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "yes" || text == "no" || text == "on" || text == "off" || text == "y" || text == "n";
}

// Dates, times and numbers ("2026-11-21", "1:30", "1_000") that YAML 1.1 readers don't take for strings.
bool is_old_number(std::string_view text) {
  return std::isdigit(static_cast<unsigned char>(text.front())) &&
         text.find_first_of(":-_") != std::string_view::npos &&
         text.find_first_not_of("0123456789:-_.eETZ+") == std::string_view::npos;
}

// Whether the text needs no quotes.
bool plain(const std::string& text) {
  if (text.empty() || !yaml_scalar(text).is_string() || is_old_bool(text) || is_old_number(text)) return false;
  if (std::string_view(" ?:,[]{}#&*!|>'\"%@`=<").find(text.front()) != std::string_view::npos) return false;
  if (text == "-" || text.starts_with("- ") || text.starts_with("---")) return false;
  if (text.back() == ' ' || text.back() == ':') return false;
  if (text.find(": ") != std::string::npos || text.find(" #") != std::string::npos) return false;
  return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string scalar(const json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (plain(text)) return text;
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void write(const json& value, int indent, bool after_dash, std::string& out);

// Writes the value after "key:", on the same line or below it.
void write_after_key(const json& value, int indent, std::string& out) {
  if ((value.is_object() || value.is_array()) && !value.empty()) {
    out += '\n';
    // kubectl writes a list's dashes below its key, not indented.
    write(value, value.is_array() ? indent : indent + 2, false, out);
  } else {
    out += " " + scalar(value) + "\n";
  }
}

void write(const json& value, int indent, bool after_dash, std::string& out) {
  bool first = after_dash;  // the first line continues the line of the dash
  auto begin = [&] {
    if (!first) out.append(static_cast<std::size_t>(indent), ' ');
    first = false;
  };
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, item] : value.items()) {
      begin();
      const std::string text = scalar(key);
      // YAML lets readers give up on a simple key's colon after 1024 characters.
      out += text.size() < 1000 ? text + ":"
                                : std::format("? {}\n{}:", text, std::string(static_cast<std::size_t>(indent), ' '));
      write_after_key(item, indent, out);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const json& item : value) {
      begin();
      out += "- ";
      write(item, indent + 2, true, out);
    }
  } else {
    begin();
    out += scalar(value) + "\n";
  }
}

}  // namespace

std::string write_yaml(const json& value) {
  std::string out;
  write(value, 0, false, out);
  return out;
}

}  // namespace bsp
