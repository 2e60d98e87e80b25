#include "base/core/clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace bsp {
namespace {

using namespace std::chrono_literals;

TEST(Clock, ATimeIsReadAsItIsWritten) {
  for (const char* text : {"2026-11-21T04:05:06.123456Z", "1970-01-01T00:00:00.000001Z", "2116-02-20T23:53:38.427387Z"})
    EXPECT_EQ(to_rfc3339(from_rfc3339(text)), text);
  EXPECT_EQ(from_rfc3339("2026-11-21T04:05:06Z"), Time(1795233906s));
}

TEST(Clock, OtherTextIsNoTime) {
  for (const char* text : {"", "text", "2026-11-21", "2026-13-01T00:00:00Z", "1e300"})
    EXPECT_EQ(from_rfc3339(text), Time{}) << text;
}

// Whoever may write an object writes any time, and every reader takes differences.
TEST(Clock, TheDifferenceOfTwoTimesThatWereReadFits) {
  for (const char* far :
       {"0001-01-01T00:00:00Z", "1678-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2117-01-01T00:00:00Z",
        "2262-04-11T00:00:00Z", "9999-12-31T23:59:59Z", "32767-12-31T23:59:59Z"})
    EXPECT_EQ(from_rfc3339(far), Time{}) << far;
  EXPECT_GT(from_rfc3339("2116-02-20T00:00:00Z") - from_rfc3339("1970-01-01T00:00:00Z"), 146 * 365 * 24h);
}

TEST(Clock, SecondsThatDoNotFitAreTheLongest) {
  EXPECT_EQ(from_seconds(1.5), 1500ms);
  EXPECT_EQ(from_seconds(-1.5), -1500ms);
  for (const double many : {1e11, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(from_seconds(many), kLongest) << many;
    EXPECT_EQ(from_seconds(-many), -kLongest) << many;
  }
  EXPECT_EQ(from_seconds(std::numeric_limits<double>::quiet_NaN()), Duration{});
  EXPECT_GT(kLongest + (kLongest - 1ns), kLongest);
}

}  // namespace
}  // namespace bsp
