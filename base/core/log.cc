#include "base/core/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/core/clock.h"

namespace bsp {
namespace {

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

void set_log_level(LogLevel level) { threshold() = level; }

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < threshold().load()) return;
  std::string line = to_rfc3339(SystemClock{}.now());
  line += ' ';
  line += "DIWE"[static_cast<int>(level)];
  line += ' ';
  line += message;
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  line += '\n';
  // One write(2) per line, so that lines from several threads and processes don't mix.
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace bsp
