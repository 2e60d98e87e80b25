#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/json/utf8.h"
#include "base/json/yaml.h"

namespace bsp {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 100;
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

// Error messages quote the text and end up in JSON, which can't hold invalid UTF-8. YAML forbids control characters,
// and yaml-cpp takes a NUL for a backslash.
void check_characters(std::string_view text) {
  int line = 1;
  for (std::size_t n = 1; !text.empty(); text.remove_prefix(n)) {
    n = utf8_length(text);
    if (n == 0) throw YamlError{line, "not UTF-8; save the file in that encoding"};
    const auto c = static_cast<unsigned char>(text.front());
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
      throw YamlError{line,
                      std::format("control character {:#04x}; remove it, or write it in quotes: \"\\x{:02x}\"", c, c)};
    line += c == '\n';
  }
}

// yaml-cpp's messages quote only the first byte of an unexpected character; this escapes it.
std::string escape_partial_characters(std::string_view text) {
  std::string whole;
  for (std::size_t n = 1; !text.empty(); text.remove_prefix(std::max<std::size_t>(n, 1))) {
    n = utf8_length(text);
    whole += n > 0 ? text.substr(0, n) : std::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
  }
  return whole;
}

[[noreturn]] void wrong(const YAML::Mark& mark, std::string what) {
  throw YamlError{mark.is_null() ? 0 : mark.line + 1, std::move(what)};
}

// yaml-cpp 0.8 decodes these two escapes to a byte that isn't valid UTF-8.
void check_decoded(const YAML::Mark& mark, std::string_view text, const std::string& path) {
  for (std::size_t n = 1; !text.empty(); text.remove_prefix(n)) {
    n = utf8_length(text);
    if (n == 0)
      wrong(mark,
            std::format("{}{}\\_ and \\N are not supported; write \\u00a0 or \\u0085", path, path.empty() ? "" : ": "));
  }
}

json scalar_value(const YAML::Mark& mark, const std::string& tag, const std::string& text, const std::string& path) {
  check_decoded(mark, text, path);
  json value = tag == "?" ? yaml_scalar(text) : json(text);
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    wrong(mark, std::format("{}: must be a finite number, not {}", path, text));
  if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str") return value;
  value = yaml_scalar(text);
  if ((tag == "tag:yaml.org,2002:int" && value.is_number_integer()) ||
      (tag == "tag:yaml.org,2002:float" && value.is_number()) ||
      (tag == "tag:yaml.org,2002:bool" && value.is_boolean()) || (tag == "tag:yaml.org,2002:null" && value.is_null()))
    return value;
  wrong(mark, std::format("{}: tag {} doesn't match the value \"{}\"; remove the tag", path, tag, text));
}

// Builds JSON from the parser's events. `open_` is the stack of unfinished maps and lists; a finished value goes into
// the innermost of them.
//
// It keeps its first error until the parser is done, because "not valid YAML" further down explains more.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(std::vector<json>& documents, std::vector<YamlLines>* lines)
      : documents_(documents), all_lines_(lines) {}

  void check() const {
    if (wrong_) throw YamlError(*wrong_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp 0.8 takes anything that can't follow a flow map or list ("{a: b},") for another document, and starts
    // that document over and over.
    if (mark.pos == begun_) wrong(mark, "not valid YAML: only a line with --- and another document can follow here");
    begun_ = mark.pos;
    document_ = nullptr;
    lines_.clear();
    anchors_.clear();
    values_ = 0;
  }
  void OnDocumentEnd() override {
    if (document_.is_null()) return;
    documents_.push_back(std::move(document_));
    if (all_lines_) all_lines_->push_back(std::move(lines_));
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    unless_failed([&] {
      begin(mark);
      end(mark, anchor, {});
    });
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    unless_failed([&] {
      if (expects_key()) {
        if (anchor != YAML::NullAnchor)
          anchors_[anchor] = {.value = scalar_value(mark, tag, text, open_.back().part.path), .text = text, .path = {}};
        return begin_field(mark, text, tag == "?");
      }
      const std::string at = begin(mark);
      end(mark, anchor, {.value = scalar_value(mark, tag, text, at), .text = text, .path = {}});
    });
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    unless_failed([&] {
      const auto found = anchors_.find(anchor);
      if (expects_key() && found != anchors_.end() && found->second.text)
        return begin_field(mark, *found->second.text, false);
      const std::string at = begin(mark);
      if (found == anchors_.end()) wrong(mark, at + ": alias to a value that contains it");
      const Part& part = found->second;
      count(mark, part.values - 1);
      check_depth(mark, part.depth, at);
      copy_lines(part.path, at);
      end(mark, YAML::NullAnchor, part);
    });
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    unless_failed([&] { open(mark, anchor, json::array()); });
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    unless_failed([&] { open(mark, anchor, json::object()); });
  }
  void OnSequenceEnd() override {
    unless_failed([&] { close(); });
  }
  void OnMapEnd() override {
    unless_failed([&] {
      add_merged(open_.back());
      close();
    });
  }

 private:
  // A value, with what an alias to it needs.
  struct Part {
    json value = nullptr;
    std::optional<std::string> text = std::nullopt;  // of a scalar, which an alias can use as a key
    std::string path;
    std::size_t values = 1;
    std::size_t depth = 0;
  };
  struct Open {
    Part part;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    std::optional<std::string> key = std::nullopt;  // in a map: the key whose value comes next
    bool merges = false;                            // that key is <<
    std::vector<std::pair<std::string, json>> merged;
  };

  static std::string field_of(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }
  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().part.value.is_object() && !open_.back().key;
  }
  // The path of the value that comes next.
  [[nodiscard]] std::string path() const {
    if (open_.empty()) return "";
    const Open& in = open_.back();
    return in.key ? field_of(in.part.path, *in.key) : std::format("{}[{}]", in.part.path, in.part.value.size());
  }

  void unless_failed(auto build) {
    if (wrong_) return;
    try {
      build();
    } catch (const YamlError& error) {
      wrong_ = error;
    }
  }

  void count(const YAML::Mark& mark, std::size_t values) {
    values_ += values;
    if (values_ > kMaxValues) wrong(mark, "more than 20000 values with aliases expanded");
  }
  void check_depth(const YAML::Mark& mark, std::size_t depth, const std::string& path) const {
    if (open_.size() + depth > kMaxDepth) wrong(mark, path + ": nested too deeply");
  }
  void note(const std::string& path, const YAML::Mark& mark) {
    if (all_lines_ && !mark.is_null()) lines_.try_emplace(path, mark.line + 1);
  }
  void copy_lines(const std::string& from, const std::string& to) {
    if (from.empty()) return;  // the part is a key, so no lines are recorded below it
    std::vector<std::pair<std::string, int>> copies;
    for (auto it = lines_.lower_bound(from); it != lines_.end() && it->first.starts_with(from); ++it)
      if (const std::string rest = it->first.substr(from.size()); rest.empty() || rest[0] == '.' || rest[0] == '[')
        copies.emplace_back(to + rest, it->second);
    for (auto& [path, line] : copies) lines_.try_emplace(std::move(path), line);
  }

  void begin_field(const YAML::Mark& mark, const std::string& key, bool plain) {
    Open& map = open_.back();
    check_decoded(mark, key, map.part.path);
    map.merges = plain && key == "<<";
    if (!map.merges) {
      const std::string path = field_of(map.part.path, key);
      if (map.part.value.contains(key)) wrong(mark, path + ": given twice; remove one of them");
      note(path, mark);
    }
    map.key = key;
  }

  std::string begin(const YAML::Mark& mark) {
    if (expects_key())
      wrong(mark, std::format("{}: a key must be a string",
                              open_.back().part.path.empty() ? "the document" : open_.back().part.path));
    std::string at = path();
    if (!open_.empty() && !open_.back().key) note(at, mark);
    check_depth(mark, 0, at);
    count(mark, 1);
    return at;
  }
  void end(const YAML::Mark& mark, YAML::anchor_t anchor, Part part) {
    part.path = path();
    if (anchor != YAML::NullAnchor) anchors_[anchor] = part;
    if (open_.empty()) {
      document_ = std::move(part.value);
      return;
    }
    Open& in = open_.back();
    in.part.values += part.values;
    in.part.depth = std::max(in.part.depth, part.depth + 1);
    if (in.merges)
      merge(mark, std::move(part), in);
    else if (in.key)
      in.part.value[*in.key] = std::move(part.value);
    else
      in.part.value.push_back(std::move(part.value));
    in.key.reset();
    in.merges = false;
  }
  static void merge(const YAML::Mark& mark, Part part, Open& into) {
    const bool list = part.value.is_array();
    json maps = list ? std::move(part.value) : json::array({std::move(part.value)});
    for (std::size_t i = 0; i < maps.size(); ++i) {
      if (!maps[i].is_object()) wrong(mark, part.path + ": must be a map or a list of maps");
      into.merged.emplace_back(list ? std::format("{}[{}]", part.path, i) : part.path, std::move(maps[i]));
    }
  }
  // Explicit keys win over merged ones, and an earlier map over a later one.
  void add_merged(Open& map) {
    for (const auto& [path, other] : map.merged)
      for (const auto& [key, value] : other.items()) {
        if (map.part.value.contains(key)) continue;
        map.part.value[key] = value;
        copy_lines(field_of(path, key), field_of(map.part.path, key));
      }
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor, json empty) {
    std::string at = begin(mark);
    open_.push_back(
        {.part = {.value = std::move(empty), .path = std::move(at)}, .mark = mark, .anchor = anchor, .merged = {}});
  }
  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    end(done.mark, done.anchor, std::move(done.part));
  }

  std::vector<json>& documents_;
  std::vector<YamlLines>* all_lines_;
  int begun_ = -1;
  json document_;
  YamlLines lines_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Part> anchors_;
  std::size_t values_ = 0;
  std::optional<YamlError> wrong_;
};

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
  if (number.size() > 1 && number.front() == '0' && parse_whole(number, 8, whole) &&
      whole <= std::numeric_limits<std::int64_t>::max())
    return negative ? json(-static_cast<std::int64_t>(whole)) : json(whole);
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
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    Builder builder(documents, lines);
    while (parser.HandleNextDocument(builder)) continue;
    builder.check();
  } catch (const YamlError& error) {
    return std::unexpected(error);
  } catch (const YAML::Exception& error) {
    return std::unexpected(YamlError{error.mark.is_null() ? 0 : error.mark.line + 1,
                                     "not valid YAML: " + escape_partial_characters(error.msg)});
  }
  return documents;
}

}  // namespace bsp
