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

// The text of a pod's log file, or of a rank's in the order of its pods, with partial entries joined into lines. A
// line that standard output has begun isn't broken by one on standard error, such as bsp-init's about a source whose
// rank has moved within the line.
class LogText {
 public:
  void add(std::string_view file_content);
  // Lines, then what each stream has begun: only that may change when more is added.
  [[nodiscard]] std::string text() const;

 private:
  std::string lines_;
  std::string begun_stdout_;
  std::string begun_stderr_;
};
// The last `lines` lines (at most `bytes`), for messages. Empty if there is no log.
std::string log_tail(const std::string& path, std::size_t lines, std::size_t bytes);

}  // namespace bsp::local
