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
  void write(std::size_t file, const std::string& text) { std::ofstream(files_[file], std::ios::app) << text; }

  const std::string directory_ = testing::TempDir() + "/rank_log_" + std::to_string(::getpid());
  std::vector<std::string> files_ = {directory_ + "/0", directory_ + "/1"};
  RankLog log_;

  RankLogTest() { std::filesystem::create_directories(directory_); }
  ~RankLogTest() override { std::filesystem::remove_all(directory_); }
};

// The source's pod still writes when the target's has begun: what was printed isn't printed again.
TEST_F(RankLogTest, EachLineComesOnceWhateverFileGrows) {
  write(0, "t stdout F one\nt stdout P tw");
  EXPECT_EQ(log_.next(files_, false), "one\n");
  write(0, "o\n");  // the entry is whole only now
  EXPECT_EQ(log_.next(files_, false), "");
  write(1, "t stdout F /2\nt stdout F three\n");
  EXPECT_EQ(log_.next(files_, false), "two/2\nthree\n");
  write(0, "t stderr F bsp-init: the program has moved\n");
  EXPECT_EQ(log_.next(files_, false), "bsp-init: the program has moved\n");
  write(1, "t stdout F four\nt stdout P end");
  EXPECT_EQ(log_.next(files_, true), "four\nend");
}

TEST_F(RankLogTest, BytesAreKept) {
  write(0, std::string("t stdout F a\0b\xef"
                       "c\n",
                       16));
  EXPECT_EQ(log_.next(files_, true), std::string("a\0b\xef"
                                                 "c\n",
                                                 6));
  EXPECT_EQ(log_tail(files_[0], 1, 100), std::string("a\0b\xEF\xBF\xBD"
                                                     "c",
                                                     7));
  EXPECT_EQ(log_tail(files_[0], 1, 1), "c");
  EXPECT_EQ(RankLog().next({directory_ + "/none"}, true), "");
}

}  // namespace
}  // namespace bsp::local
