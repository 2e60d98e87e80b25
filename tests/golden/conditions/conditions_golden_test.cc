// docs/conditions.md is made of the table of conditions.
#include <format>
#include <set>
#include <sstream>

#include "operator/reconcile/kernel/conditions.h"
#include "tests/golden/golden.h"

namespace bsp::reconcile {
namespace {

// A list's item in lines of Markdown, of at most 140 columns as everywhere.
std::string item(const std::string& title, const std::string& text) {
  std::string out = "* " + title + ":";
  std::size_t column = out.size();
  std::istringstream words(text);
  for (std::string word; words >> word; column += 1 + word.size(), out += word) {
    const bool fits = column + 1 + word.size() <= 140;
    out += fits ? " " : "\n  ";
    if (!fits) column = 1;
  }
  return out + "\n";
}

std::string page() {
  std::string text =
      "# Conditions of a BSPJob\n\n"
      "`kubectl describe bspjob NAME` shows them. Each message ends with what to do about it, as it stands here. A "
      "condition that was never\n"
      "True is missing; one that is over is False, and its message says so. This page is generated from "
      "`operator/reconcile/kernel/conditions.inc`\n"
      "(`UPDATE_GOLDEN=1 ./dev test -L golden`).\n";
  for (const ConditionKind& kind : condition_kinds()) {
    if (*kind.remedy == '\0') continue;
    text += std::format("\n## {}\n\nRaised when {}.\n\n", kind.type, kind.raised);
    text += item("reason", kind.reasons) + item("message, such as", kind.message) + item("what to do", kind.remedy);
  }
  text +=
      "\n## The phase\n\nOf these, those are True that fit the job's phase; nothing is wrong with them. `kubectl wait` "
      "can wait for\nall but Starting and Migrating, which pass.\n\n| type | True when |\n| --- | --- |\n";
  for (const ConditionKind& kind : condition_kinds())
    if (*kind.remedy == '\0') text += std::format("| `{}` | {} |\n", kind.type, kind.raised);
  return text;
}

TEST(Conditions, PageIsMadeOfTheTable) { golden::expect_same("../../docs/conditions.md", page()); }

TEST(Conditions, EachSaysWhatToDo) {
  std::set<std::string> types;
  for (const ConditionKind& kind : condition_kinds()) {
    EXPECT_TRUE(types.insert(kind.type).second) << kind.type << " is there twice";
    EXPECT_NE(*kind.raised * *kind.reasons * *kind.message, 0) << kind.type;
    if (*kind.remedy == '\0') continue;
    const std::string whole = with_remedy(kind.type, "it is so");
    EXPECT_EQ(whole, std::string("it is so; ") + kind.remedy);
    EXPECT_EQ(with_remedy(kind.type, whole), whole) << "once";
  }
  EXPECT_EQ(with_remedy("Running", "every rank runs"), "every rank runs");
  EXPECT_DEATH((void)condition_kind("Unheard"), "every condition is in the table");
}

}  // namespace
}  // namespace bsp::reconcile
