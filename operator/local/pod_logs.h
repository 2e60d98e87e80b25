// Logs of containers, kept after their pod is deleted: <store>/logs/<pod>/<container>.log.
//
// Format (Kubernetes' and conmon's "k8s-file"): "<RFC 3339 time> stdout|stderr F|P <text>"; P means that the line
// continues in the next entry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  [[nodiscard]] std::string text() const { return lines_ + begun(); }
  [[nodiscard]] std::string begun() const { return begun_stderr_ + begun_stdout_; }
  // The lines since the last call.
  std::string take_lines() { return std::exchange(lines_, {}); }

 private:
  std::string lines_;
  std::string begun_stdout_;
  std::string begun_stderr_;
};
// The log of a seat, which has the output of one rank after another (base/core/rank_line.h).
struct SeatLog {
  std::string file;
  std::uint32_t rank = 0;  // whose it begins with
};
// A rank's output as it comes. A source's log may still grow when the target's does: each file is read on from where it was, so
// that what was returned once stays as it is.
class RankLog {
 public:
  explicit RankLog(std::uint32_t rank) : rank_(rank) {}
  // What the seats' logs have gained of the rank's whole lines, in the order in which it has had the seats; at the `end` also
  // what has begun. `logs`: in the same order each time, and only ever more.
  std::string next(const std::vector<SeatLog>& logs, bool end);

 private:
  struct Read {
    std::size_t bytes = 0;
    std::uint32_t rank = 0;  // whose output comes next
  };
  struct Part;
  void split(std::string_view more, Read& read, std::vector<Part>& parts) const;

  std::uint32_t rank_;
  std::map<std::string, Read> read_;  // by file
  LogText log_;
};

// The last `lines` lines (at most `bytes`) as UTF-8, for messages. Empty if there is no log.
std::string log_tail(const std::string& path, std::size_t lines, std::size_t bytes);

}  // namespace bsp::local
