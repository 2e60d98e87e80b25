// A rank's output from the log files of its pods.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "operator/local/pod_logs.h"

namespace bsp::local {
namespace {

// The rank has moved while the first half of a line had been written.
TEST(LogText, ALineOfStandardOutputIsWholeAfterAMove) {
  LogText log;
  log.add(
      "2026-11-27T20:12:14.1Z stdout F step 1\n"
      "2026-11-27T20:12:14.2Z stdout P step \n"
      "2026-11-27T20:12:15.0Z stderr F bsp-init: the program was killed\n");
  log.add("2026-11-27T20:12:16.0Z stdout F 2\n");
  EXPECT_EQ(log.text(), "step 1\nbsp-init: the program was killed\nstep 2\n");
}

// `logs --follow` prints up to the last end of a line.
TEST(LogText, OnlyWhatComesAfterTheLastEndOfALineMayChange) {
  LogText log;
  log.add("2026-11-27T20:12:14.2Z stdout P a\n2026-11-27T20:12:14.2Z stderr P x\n");
  EXPECT_EQ(log.text(), "xa");
  log.add("2026-11-27T20:12:15.0Z stdout F b\n2026-11-27T20:12:15.0Z stdout P c\n");
  EXPECT_EQ(log.text(), "ab\nxc");
}

class RankLogTest : public testing::Test {
 protected:
  void write(std::size_t file, const std::string& text) { std::ofstream(logs_[file].file, std::ios::app) << text; }

  const std::string directory_ = testing::TempDir() + "/rank_log_" + std::to_string(::getpid());
  std::vector<SeatLog> logs_ = {{directory_ + "/0", 3}, {directory_ + "/1", 3}};
  RankLog log_{3};

  RankLogTest() { std::filesystem::create_directories(directory_); }
  ~RankLogTest() override { std::filesystem::remove_all(directory_); }
};

// The source's pod still writes when the target's has begun: what was printed isn't printed again.
TEST_F(RankLogTest, EachLineComesOnceWhateverFileGrows) {
  write(0, "t stdout F one\nt stdout P tw");
  EXPECT_EQ(log_.next(logs_, false), "one\n");
  write(0, "o\n");  // the entry is whole only now
  EXPECT_EQ(log_.next(logs_, false), "");
  write(1, "t stdout F /2\nt stdout F three\n");
  EXPECT_EQ(log_.next(logs_, false), "two/2\nthree\n");
  write(0, "t stderr F bsp-init: the program has moved\n");
  EXPECT_EQ(log_.next(logs_, false), "bsp-init: the program has moved\n");
  write(1, "t stdout F four\nt stdout P end");
  EXPECT_EQ(log_.next(logs_, true), "four\nend");
}

// Rank 3 leaves its seat, which rank 5 then has, goes to that of rank 4, and comes home.
TEST_F(RankLogTest, ASeatHasTheOutputOfOneRankAfterAnother) {
  logs_[1].rank = 4;
  const std::string home =
      "t1 stdout F one\nt1 stdout P half \nt3 stderr F bsp-init: rank 5 goes on in this container\nt3 stdout F not "
      "mine\n"
      "t5 stderr F bsp-init: rank 3 goes on in this container\nt5 stdout F three\n";
  const std::string away =
      "t1 stdout F not mine\nt2 stderr F bsp-init: rank 3 goes on in this container\nt2 stdout F a line\n";
  write(0, home);
  write(1, away);
  const std::string all = "one\nhalf a line\nthree\n";
  EXPECT_EQ(log_.next(logs_, true), all);
  // The same while it grows, line by line.
  for (std::size_t i : {0, 1}) std::filesystem::remove(logs_[i].file);
  RankLog followed(3);
  std::string text;
  const auto grow = [&](std::size_t file, const std::string& lines) {
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at) + 1;
      write(file, lines.substr(at, end - at));
      text += followed.next(logs_, false);
      at = end;
    }
  };
  const std::size_t returns = home.find("t5");
  grow(0, home.substr(0, returns));
  grow(1, away);
  grow(0, home.substr(returns));
  EXPECT_EQ(text, all);
  RankLog others(5);
  EXPECT_EQ(others.next(logs_, true), "not mine\n");
}

TEST_F(RankLogTest, BytesAreKept) {
  write(0, std::string("t stdout F a\0b\xef"
                       "c\n",
                       16));
  EXPECT_EQ(log_.next(logs_, true), std::string("a\0b\xef"
                                                "c\n",
                                                6));
  EXPECT_EQ(log_tail(logs_[0].file, 1, 100), std::string("a\0b\xEF\xBF\xBD"
                                                         "c",
                                                         7));
  EXPECT_EQ(log_tail(logs_[0].file, 1, 1), "c");
  EXPECT_EQ(RankLog(0).next({{directory_ + "/none", 0}}, true), "");
}

}  // namespace
}  // namespace bsp::local
