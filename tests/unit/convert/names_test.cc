#include "operator/convert/names.h"

#include <gtest/gtest.h>

namespace bsp::convert {
namespace {

TEST(Names, AreBoundedInText) {
  for (const char* text : {"$STEPS", "a${STEPS}", "$(STEPS)b", "${STEPS:-3}", "$STEPSIZE$STEPS", "$STEPS.txt"})
    EXPECT_TRUE(names_variable(text, "STEPS")) << text;
  for (const char* text : {"STEPS", "$STEPSIZE", "${STEPSIZE}", "$(STEPSIZE)", "$STEPS_", "$(STEPS now)", "$"})
    EXPECT_FALSE(names_variable(text, "STEPS")) << text;
}

TEST(Names, AssignmentsAreSplitAtTheFirstSign) {
  EXPECT_EQ(assignment("A=b=c"), std::pair(std::string("A"), std::string("b=c")));
  EXPECT_EQ(assignment("a.b="), std::pair(std::string("a.b"), std::string()));
  EXPECT_EQ(assignment("A"), std::nullopt);
  EXPECT_EQ(assignment("=A"), std::nullopt);
  EXPECT_EQ(shell_assignment("A+=b"), std::pair(std::string("A+"), std::string("b")));
  EXPECT_EQ(shell_assignment("--a=b"), std::nullopt);
  EXPECT_EQ(shell_assignment("1A=b"), std::nullopt);
}

}  // namespace
}  // namespace bsp::convert
