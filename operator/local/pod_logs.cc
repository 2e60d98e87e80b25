#include "operator/local/pod_logs.h"

#include <algorithm>

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

std::string RankLog::next(const std::vector<std::string>& files, bool end) {
  read_.resize(std::max(read_.size(), files.size()));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto content = read_file(files[i]);
    if (!content || content->size() <= read_[i]) continue;
    std::string_view more = std::string_view(*content).substr(read_[i]);
    if (!end) more = more.substr(0, more.rfind('\n') + 1);  // an entry that is being written isn't one yet
    log_.add(more);
    read_[i] += more.size();
  }
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
