// Each manifest of this folder, as a BSPJob and what isn't carried over.
#include "operator/convert/convert.h"
#include "tests/golden/golden.h"

namespace bsp::convert {
namespace {

class Manifest : public testing::TestWithParam<std::string> {};

TEST_P(Manifest, BecomesABspJob) {
  const std::string file = GetParam() + ".yaml";
  const auto converted = convert(golden::read("convert/" + file), file);
  ASSERT_TRUE(converted) << converted.error().message;
  std::string notes;
  for (const std::string& program : converted->rebuild) notes += "rebuild: " + program + "\n";
  for (const std::string& note : converted->notes) notes += note + "\n";
  golden::expect_same("convert/" + GetParam() + ".job.yaml", converted->yaml);
  golden::expect_same("convert/" + GetParam() + ".notes.txt", notes);
}

INSTANTIATE_TEST_SUITE_P(Convert, Manifest,
                         testing::Values("plain", "shell", "hydra", "script", "list", "volcano", "trainjob", "old",
                                         "template", "workflow", "parts"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace bsp::convert
