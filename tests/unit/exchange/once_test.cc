#include "operator/exchange/once.h"

#include <gtest/gtest.h>

namespace bsp::exchange {
namespace {

TEST(Once, TakesEachNumberOnceInAnyOrder) {
  Once once;
  EXPECT_TRUE(once.take(2));
  EXPECT_EQ(once.whole(), 0u);
  EXPECT_FALSE(once.take(2));
  EXPECT_TRUE(once.take(1));
  EXPECT_EQ(once.whole(), 2u);
  EXPECT_FALSE(once.take(1));
  EXPECT_TRUE(once.take(4));
  EXPECT_TRUE(once.take(3));
  EXPECT_EQ(once.whole(), 4u);
  EXPECT_FALSE(once.take(4));
  EXPECT_FALSE(once.take(0));
}

}  // namespace
}  // namespace bsp::exchange
