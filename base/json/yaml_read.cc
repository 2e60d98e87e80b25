#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json/yaml.h"

namespace bsp {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 100;
constexpr std::size_t kMaxValues = 20'000;  // with aliases expanded

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::ranges::find(list, text) != list.end();
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// [-+]? ( . [0-9]+ | [0-9]+ ( . [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (!exponent.empty() && (exponent.front() == '-' || exponent.front() == '+')) exponent.remove_prefix(1);
    if (!all_digits(exponent)) return false;
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return all_digits(text);
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = text.substr(point + 1);
  if (whole.empty()) return all_digits(fraction);
  return all_digits(whole) && (fraction.empty() || all_digits(fraction));
}

template <class Number>
bool parse_whole(std::string_view digits, int base, Number& out) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  return error == std::errc{} && end == digits.data() + digits.size();
}

// How long the character is that begins the text; 0 if none does. By table 3-7 of the Unicode standard.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return follows(1) && follows(2) && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1) && follows(2) && follows(3) && !(first == 0xF0 && second < 0x90) &&
                   !(first == 0xF4 && second > 0x8F)
               ? 4
               : 0;
  return 0;
}

// What is no UTF-8 would end up in messages, and those in JSON, which can't hold it. Control characters are not for
// YAML, and yaml-cpp takes a NUL for a backslash.
void check_characters(std::string_view text) {
  int line = 1;
  for (std::size_t n = 1; !text.empty(); text.remove_prefix(n)) {
    n = utf8_length(text);
    if (n == 0) throw YamlError{line, "not a text in UTF-8; save the file in that encoding"};
    const auto c = static_cast<unsigned char>(text.front());
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
      throw YamlError{
          line, std::format("a control character ({:#04x}); take it out, or write it \"\\x{:02x}\" in quotes", c, c)};
    line += c == '\n';
  }
}

// yaml-cpp 0.8 makes of these two escapes a byte that is no character.
void check_decoded(const YAML::Node& scalar, const std::string& path) {
  std::string_view text = scalar.Scalar();
  for (std::size_t n = 1; !text.empty(); text.remove_prefix(n)) {
    n = utf8_length(text);
    if (n == 0)
      throw YamlError{
          scalar.Mark().is_null() ? 0 : scalar.Mark().line + 1,
          std::format("{}{}\\_ and \\N are not understood; write \\u00a0 or \\u0085", path, path.empty() ? "" : ": ")};
  }
}

class Reader {
 public:
  explicit Reader(YamlLines* lines) : lines_(lines) {}

  json read(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kMaxDepth) wrong(node, path + ": nested too deeply (or an alias to itself)");
    if (++values_ > kMaxValues) wrong(node, "more than 20000 values, aliases counted");
    switch (node.Type()) {
      case YAML::NodeType::Map:
        return read_map(node, path, depth);
      case YAML::NodeType::Sequence: {
        json list = json::array();
        for (const YAML::Node& item : node) {
          const std::string at = std::format("{}[{}]", path, list.size());
          note(at, item);
          list.push_back(read(item, at, depth + 1));
        }
        return list;
      }
      case YAML::NodeType::Scalar:
        return read_scalar(node, path);
      default:
        return nullptr;
    }
  }

 private:
  [[noreturn]] static void wrong(const YAML::Node& node, const std::string& what) {
    throw YamlError{node.Mark().is_null() ? 0 : node.Mark().line + 1, what};
  }
  void note(const std::string& path, const YAML::Node& node) {
    if (lines_ && !node.Mark().is_null()) lines_->try_emplace(path, node.Mark().line + 1);
  }

  json read_map(const YAML::Node& node, const std::string& path, int depth) {
    json object = json::object();
    std::vector<YAML::Node> merged;
    for (const auto& pair : node) {
      if (!pair.first.IsScalar())
        wrong(pair.first, std::format("{}: a key must be a text", path.empty() ? "the document" : path));
      check_decoded(pair.first, path);
      const std::string& key = pair.first.Scalar();
      if (key == "<<" && pair.first.Tag() == "?") {
        if (pair.second.IsSequence())
          for (const YAML::Node& item : pair.second) merged.push_back(item);
        else
          merged.push_back(pair.second);
        continue;
      }
      const std::string at = path.empty() ? key : path + "." + key;
      if (object.contains(key)) wrong(pair.first, at + ": given twice; remove one of them");
      note(at, pair.first);
      object[key] = read(pair.second, at, depth + 1);
    }
    for (const YAML::Node& other : merged) {
      if (!other.IsMap()) wrong(other, path + ".<<: must be a map or a list of maps");
      // What is written out wins over what is merged, an earlier map over a later one.
      const json more = read(other, path, depth + 1);
      for (const auto& [key, value] : more.items())
        if (!object.contains(key)) object[key] = value;
    }
    return object;
  }

  static json read_scalar(const YAML::Node& node, const std::string& path) {
    check_decoded(node, path);
    const std::string& tag = node.Tag();
    json value = tag == "?" ? yaml_scalar(node.Scalar()) : json(node.Scalar());
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
      wrong(node, std::format("{}: must be a finite number, not {}", path, node.Scalar()));
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str") return value;
    value = yaml_scalar(node.Scalar());
    if ((tag == "tag:yaml.org,2002:int" && value.is_number_integer()) ||
        (tag == "tag:yaml.org,2002:float" && value.is_number()) ||
        (tag == "tag:yaml.org,2002:bool" && value.is_boolean()) || (tag == "tag:yaml.org,2002:null" && value.is_null()))
      return value;
    wrong(node, std::format("{}: the tag {} does not fit \"{}\"; leave it out", path, tag, node.Scalar()));
  }

  YamlLines* lines_;
  std::size_t values_ = 0;
};

// Whether the text has an end: yaml-cpp 0.8 takes what can't follow a flow map or list ("{a: b},") for another
// document, and begins that again and again.
class Documents final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == begun_)
      throw YamlError{mark.line + 1,
                      "not valid YAML: nothing can follow here but a line with --- and another document"};
    begun_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int begun_ = -1;
};

void check_ends(std::string_view text) {
  std::istringstream in{std::string(text)};
  YAML::Parser parser(in);
  for (Documents documents; parser.HandleNextDocument(documents);) continue;
}

}  // namespace

json yaml_scalar(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (one_of(text, {"true", "True", "TRUE"})) return true;
  if (one_of(text, {"false", "False", "FALSE"})) return false;
  if (one_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  std::string_view number = text;
  if (number.front() == '+' || number.front() == '-') number.remove_prefix(1);
  const bool negative = text.front() == '-';
  if (one_of(number, {".inf", ".Inf", ".INF"})) {
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  std::uint64_t whole = 0;
  if (all_digits(number)) {
    std::int64_t below = 0;
    if (negative && parse_whole(text, 10, below)) return below;
    if (!negative && parse_whole(number, 10, whole)) return whole;
  }
  if (text.starts_with("0o") && parse_whole(text.substr(2), 8, whole)) return whole;
  if (text.starts_with("0x") && parse_whole(text.substr(2), 16, whole)) return whole;
  double value = 0;
  if (is_float(text)) {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc{}) return negative ? -value : value;
    if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  }
  return std::string(text);
}

std::expected<std::vector<json>, YamlError> read_yaml(std::string_view text, std::vector<YamlLines>* lines) {
  std::vector<json> documents;
  try {
    check_characters(text);
    check_ends(text);
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      YamlLines found;
      json document = Reader(lines ? &found : nullptr).read(node, "", 0);
      if (document.is_null()) continue;
      documents.push_back(std::move(document));
      if (lines) lines->push_back(std::move(found));
    }
  } catch (const YamlError& error) {
    return std::unexpected(error);
  } catch (const YAML::Exception& error) {
    return std::unexpected(YamlError{error.mark.is_null() ? 0 : error.mark.line + 1, "not valid YAML: " + error.msg});
  }
  return documents;
}

}  // namespace bsp
