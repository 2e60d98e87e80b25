#include "operator/cli/live.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "operator/cli/exit_code.h"

namespace bsp::cli {
namespace {

constexpr int kPeriodMs = 2000;
constexpr const char* kClear = "\033[2J";        // the whole screen
constexpr const char* kHome = "\033[H";          // to its upper left corner
constexpr const char* kEraseLine = "\033[K";     // the rest of the line
constexpr const char* kEraseScreen = "\033[0J";  // everything below

}  // namespace

ScreenSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row < 2)
    return {.columns = 80, .lines = 23};
  return {.columns = size.ws_col, .lines = size.ws_row - 1u};
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

Result<int> show_live(const std::function<Result<Drawn>(ScreenSize)>& draw, bool once) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::vector<std::string> lines;
  for (bool first = true;; first = false) {
    const ScreenSize size = terminal ? terminal_size() : ScreenSize{};
    auto drawn = draw(size);
    if (!drawn && (first || drawn.error().code == ErrorCode::kNotFound)) return std::unexpected(drawn.error());
    if (drawn) lines = std::move(drawn->lines);
    std::vector<std::string> frame = lines;
    if (!drawn) {
      if (frame.size() >= size.lines) frame.pop_back();
      frame.push_back("no answer: " + drawn.error().message.substr(0, drawn.error().message.find('\n')));
    }
    if (terminal && !once) {
      std::fputs(first ? kClear : "", stdout);
      std::fputs(kHome, stdout);
      for (const std::string& line : frame) std::printf("%s%s\n", line.c_str(), kEraseLine);
      std::fputs(kEraseScreen, stdout);
      std::fflush(stdout);
    } else {
      if (!first) std::puts("");
      print_lines(frame);
    }
    if (once || (drawn && drawn->last)) return kDone;
    if (std::ferror(stdout)) return fail(ErrorCode::kFailed, "standard output can't be written");
    ::poll(nullptr, 0, kPeriodMs);
  }
}

}  // namespace bsp::cli
