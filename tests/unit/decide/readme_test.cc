// The worked example of docs/decide.md says what the code computes. UPDATE_GOLDEN=1 rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "operator/decide/explain.h"
#include "operator/decide/model/strategy.h"
#include "tests/unit/decide/world.h"

namespace bsp::decide {
namespace {

World readme_world() {
  World world({{"slow", 3, 5e8, 1}, {"fast", 3, 1e9, 1}}, {0, 1, 2, 3});
  world.instructions = {1e9, 8e8, 2e8, 1e9};
  world.recv_bytes[1, 1] = 4e6;
  for (Rank& rank : world.snapshot.ranks) rank.memory_bytes = 5e6;
  return world;
}

// AutoMig's call with every number, then what each of the other heuristics would do.
std::string readme_example() {
  const World world = readme_world();
  std::string text;
  for (const std::string& line : explain(*world.plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 4}), world.snapshot))
    text += line + "\n";
  for (const Strategy& s : strategies())
    if (s.heuristic != Heuristic::kAutoMig)
      text += headline(*world.plan({.heuristic = s.heuristic, .alpha0 = 4}), world.snapshot) + "\n";
  return text;
}

TEST(Readme, ItsWorkedExampleIsWhatTheCodeComputes) {
  const std::string path = std::string(BSP_SOURCE_DIR) + "/docs/decide.md", fence = "```\n";
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path;
  std::ostringstream whole;
  whole << in.rdbuf();
  const std::string readme = whole.str();
  const auto heading = readme.find("\n## A worked example\n");
  ASSERT_NE(heading, std::string::npos);
  const auto begin = readme.find(fence, heading) + fence.size();
  const auto end = readme.find(fence, begin);
  ASSERT_NE(end, std::string::npos);
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(path, std::ios::binary) << readme.substr(0, begin) << readme_example() << readme.substr(end);
    return;
  }
  EXPECT_EQ(readme.substr(begin, end - begin), readme_example());
}

TEST(Readme, TheFiguresInItsTextAreThoseOfTheList) {
  const auto plan = readme_world().plan({.heuristic = Heuristic::kAutoMig, .alpha0 = 4});
  const PmEntry& first = plan->pm_list.at(0);
  EXPECT_EQ(first.rank, RankId{0});
  EXPECT_DOUBLE_EQ(first.comp, 1.0 * 2.0 * 2.0);
  EXPECT_DOUBLE_EQ(first.mem, 0.051);
}

}  // namespace
}  // namespace bsp::decide
