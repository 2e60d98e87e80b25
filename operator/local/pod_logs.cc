#include "operator/local/pod_logs.h"

#include <algorithm>
#include <utility>

#include "base/core/rank_line.h"
#include "base/core/read_file.h"
#include "base/json/utf8.h"

namespace bsp::local {

std::optional<LogEntry> parse_log_line(std::string_view line) {
  const std::size_t a = line.find(' ');
  if (a == std::string_view::npos) return std::nullopt;
  const std::size_t b = line.find(' ', a + 1);
  if (b == std::string_view::npos) return std::nullopt;
  const std::string_view stream = line.substr(a + 1, b - a - 1);
  if ((stream != "stdout" && stream != "stderr") || line.size() < b + 2) return std::nullopt;
  const char tag = line[b + 1];
  if (tag != 'F' && tag != 'P') return std::nullopt;
  // "F " and the text; some versions of conmon omit the space in an empty line.
  const std::string_view text = line.size() > b + 3 ? line.substr(b + 3) : std::string_view();
  return LogEntry{line.substr(0, a), stream == "stderr", tag == 'F', text};
}

void LogText::add(std::string_view content) {
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    if (const auto entry = parse_log_line(content.substr(0, end))) {
      std::string& begun = entry->is_stderr ? begun_stderr_ : begun_stdout_;
      begun += entry->text;
      if (entry->complete) {
        lines_ += begun + '\n';
        begun.clear();
      }
    }
    content.remove_prefix(std::min(end + 1, content.size()));
  }
}

// A stay of the rank in a seat, as far as it is new.
struct RankLog::Part {
  std::string begun;  // of its first entry
  std::string text;
};

void RankLog::split(std::string_view more, Read& read, std::vector<Part>& parts) const {
  bool begins = true;
  while (!more.empty()) {
    const std::string_view line = more.substr(0, std::min(more.find('\n'), more.size() - 1) + 1);
    more.remove_prefix(line.size());
    const auto entry = parse_log_line(line.ends_with('\n') ? line.substr(0, line.size() - 1) : line);
    if (const auto next = entry && entry->is_stderr ? rank_of_line(entry->text) : std::nullopt) {
      read.rank = *next;
      begins = true;
      continue;
    }
    if (read.rank != rank_) continue;
    if (std::exchange(begins, false)) parts.push_back({entry ? std::string(entry->time) : "", {}});
    parts.back().text += line;
  }
}

std::string RankLog::next(const std::vector<SeatLog>& logs, bool end) {
  std::vector<Part> parts;
  for (const SeatLog& log : logs) {
    Read& read = read_.try_emplace(log.file, Read{.rank = log.rank}).first->second;
    const auto content = read_file(log.file);
    if (!content || content->size() <= read.bytes) continue;
    std::string_view more = std::string_view(*content).substr(read.bytes);
    if (!end) more = more.substr(0, more.rfind('\n') + 1);  // an entry that is being written isn't one yet
    read.bytes += more.size();
    split(more, read, parts);
  }
  std::ranges::stable_sort(parts, {}, &Part::begun);
  for (const Part& part : parts) log_.add(part.text);
  return log_.take_lines() + (end ? log_.begun() : "");
}

std::string log_tail(const std::string& path, std::size_t lines, std::size_t bytes) {
  const auto content = read_file(path);
  if (!content) return "";
  LogText log;
  log.add(*content);
  std::string text = log.text();
  while (text.ends_with('\n')) text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < lines && begin > 0; ++i) {
    const std::size_t before = text.rfind('\n', begin - 1);
    begin = before == std::string::npos ? 0 : before;
  }
  if (begin < text.size() && text[begin] == '\n') ++begin;
  if (text.size() - begin > bytes) begin = text.size() - bytes;
  return as_text(std::string_view(text).substr(begin));
}

}  // namespace bsp::local
