// Logs of containers, kept after their pod is deleted: <store>/logs/<pod>/<container>.log.
//
// Format (Kubernetes' and conmon's "k8s-file"): "<RFC 3339 time> stdout|stderr F|P <text>"; P means that the line
// continues in the next entry.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::local {

struct LogEntry {
  std::string_view time;
  bool is_stderr = false;
  bool complete = true;  // the line ends here
  std::string_view text;
};
// nullopt if the line has another format.
std::optional<LogEntry> parse_log_line(std::string_view line);

// The text of a log file, with partial entries joined into lines.
std::string log_text(std::string_view file_content);
// The last `lines` lines (at most `bytes`), for messages. Empty if there is no log.
std::string log_tail(const std::string& path, std::size_t lines, std::size_t bytes);

}  // namespace bsp::local
