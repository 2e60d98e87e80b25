// Structured logs: a constant message and key/value pairs, one line each on stderr.
//
//   log_info("epoch opened", {{"job", job}, {"epoch", epoch}});
//   2026-11-21T04:05:06.123456Z I epoch opened job=lbm epoch=3
#pragma once

#include <format>
#include <initializer_list>
#include <string>
#include <string_view>

namespace bsp {

struct LogField {
  std::string_view key;
  std::string value;

  template <class T>
  LogField(std::string_view k, const T& v) : key(k), value(std::format("{}", v)) {}
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Messages below this level are dropped. Default kInfo; BSP_LOG=debug|info|warning|error sets it.
void set_log_level(LogLevel level);

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

inline void log_debug(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kDebug, m, f); }
inline void log_info(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kInfo, m, f); }
inline void log_warning(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kWarning, m, f); }
inline void log_error(std::string_view m, std::initializer_list<LogField> f = {}) { log(LogLevel::kError, m, f); }

}  // namespace bsp
