// A rank's output from the log files of its pods.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bsp::local
