#include "base/core/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/core/clock.h"
#include "base/core/log_context.h"

namespace bsp {
namespace {

thread_local const std::string* job_of_thread = nullptr;

// "" if the line names one itself, or concerns none.
std::string_view job_of_line(std::initializer_list<LogField> fields) {
  const bool named = std::ranges::any_of(fields, [](const LogField& field) { return field.key == "job"; });
  return named || !job_of_thread ? std::string_view() : *job_of_thread;
}

LogLevel level_from_environment() {
  const char* text = std::getenv("BSP_LOG");
  std::string_view name = text ? text : "";
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

std::atomic<LogLevel>& threshold() {
  static std::atomic<LogLevel> level{level_from_environment()};
  return level;
}

// BSP_LOG_FORMAT=json makes each line an object: {"time":…,"level":…,"message":…} and the fields, all texts.
bool json_from_environment() {
  const char* text = std::getenv("BSP_LOG_FORMAT");
  return text && std::string_view(text) == "json";
}

// Bytes of the UTF-8 character that begins there; 0: none does.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool none = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return length > 1 && (overlong || none) ? 0 : length;
}

// What a program or a server has said may be no UTF-8, and a reader of JSON stops at a line that is none.
void append_json(std::string& line, std::string_view text) {
  line += '"';
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    if (length == 0)
      line += "\uFFFD";
    else if (static_cast<unsigned char>(text[0]) < 0x20)
      line += std::format("\\u{:04x}", static_cast<unsigned char>(text[0]));
    else
      (text[0] == '"' || text[0] == '\\' ? line += '\\' : line) += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  line += '"';
}

std::string json_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error"};
  std::string line = std::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":", to_rfc3339(SystemClock{}.now()),
                                 kLevels[static_cast<int>(level)]);
  append_json(line, message);
  if (const auto job = job_of_line(fields); !job.empty()) {
    line += ",\"job\":";
    append_json(line, job);
  }
  for (const LogField& field : fields) {
    line += ',';
    append_json(line, field.key);
    line += ':';
    append_json(line, field.value);
  }
  return line + "}";
}

void append_value(std::string& line, const std::string& value) {
  if (value.find_first_of(" \"\n=") == std::string::npos && !value.empty()) {
    line += value;
    return;
  }
  line += '"';
  for (char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n')
      line += "\\n";
    else
      line += c;
  }
  line += '"';
}

}  // namespace

LogsFor::LogsFor(const std::string& job) : former_(job_of_thread) { job_of_thread = &job; }
LogsFor::~LogsFor() { job_of_thread = former_; }

void set_log_level(LogLevel level) { threshold() = level; }

namespace {

std::string log_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  static const bool as_json = json_from_environment();
  if (as_json) return json_line(level, message, fields);
  std::string line = to_rfc3339(SystemClock{}.now());
  line += ' ';
  line += "DIWE"[static_cast<int>(level)];
  line += ' ';
  line += message;
  if (const auto job = job_of_line(fields); !job.empty()) line.append(" job=").append(job);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

}  // namespace

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < threshold().load()) return;
  const std::string line = log_line(level, message, fields) + '\n';
  // One write(2) per line, so that lines from several threads and processes don't mix.
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace bsp
