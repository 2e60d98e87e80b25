// Lines of the log as a reader of JSON takes them, whatever a program or a server has said.
#include "base/core/log.h"
#include "base/core/log_context.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace bsp {
namespace {

// What a process with that variable writes; it is chosen once, so each line needs a process of its own.
std::string logged(const char* format, const std::string& value) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::setenv("BSP_LOG_FORMAT", format, 1);
    const std::string job = "science/lbm";
    const LogsFor here(job);
    log_warning("a \"pod\" is late", {{"error", value}});
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  return text;
}

TEST(Log, IsALineOfJsonWhereThatIsAskedFor) {
  for (const auto& [said, read] : {std::pair<std::string, std::string>{"plain", "plain"},
                                   {"two\nlines\tand \\ \x01", "two\nlines\tand \\ \x01"},
                                   {"Grüße ✓ 🙂", "Grüße ✓ 🙂"},
                                   {"half \xe2\x9c", "half \uFFFD\uFFFD"},
                                   {"\xff\xc0\xaf\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"}}) {
    const std::string line = logged("json", said);
    ASSERT_TRUE(line.ends_with("}\n")) << line;
    EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object.value("level", ""), "warning");
    EXPECT_EQ(object.value("message", ""), "a \"pod\" is late");
    EXPECT_EQ(object.value("job", ""), "science/lbm");
    EXPECT_EQ(object.value("error", ""), read);
    EXPECT_EQ(object.value("time", "").size(), std::string("2026-11-21T04:05:06.123456Z").size());
  }
}

TEST(Log, IsTextOtherwise) {
  EXPECT_NE(logged("", "plain").find(" W a \"pod\" is late job=science/lbm error=plain\n"), std::string::npos);
}

}  // namespace
}  // namespace bsp
