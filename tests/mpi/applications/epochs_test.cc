// The applications under libbspmpi.so: after several epochs in the middle of their supersteps, their results equal
// those of their sequential programs.
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

struct Case {
  const char* program;
  std::uint32_t ranks;
  std::vector<std::string> arguments;
  std::uint32_t seats = 1;  // ranks of a pod
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.program << " " << c.ranks; }

// The line with the result. The output before it contains empty lines.
std::string verdict(Job& job) {
  std::string line;
  for (int lines = 0; lines < 1000 && !line.contains(": OK ") && !line.contains(": FAILED "); ++lines)
    line = job.programs[0].read_line(std::chrono::milliseconds(100));
  return line;
}

class Applications : public testing::TestWithParam<Case> {};

TEST_P(Applications, EqualTheSequentialProgramAfterEpochs) {
  constexpr int kEpochs = 4;
  auto [program, ranks, arguments, seats] = GetParam();
  arguments.emplace_back("--verify");
  Job job(
      {.ranks = ranks, .seats = seats, .program = program, .arguments = arguments, .environment = {}, .paced = true});
  ASSERT_TRUE(job.reach(2)) << job.stderr_of(0);
  for (int i = 1; i < kEpochs; ++i) {
    ASSERT_TRUE(job.turn()) << "epoch " << job.epoch() << "\n" << job.stderr_of(0) << job.stderr_of(1);
    ASSERT_TRUE(job.reach(job.status(0)["completed"].get<std::uint64_t>() + 1));
  }
  for (std::uint32_t r = 0; r < ranks; ++r) EXPECT_EQ(job.wait(r), 0) << job.stderr_of(r);
  const std::string line = verdict(job);
  EXPECT_TRUE(line.contains(": OK ") && line.contains("equal to the sequential program")) << line;
  EXPECT_EQ(job.status(0)["epoch"], kEpochs - 1);
}

INSTANTIATE_TEST_SUITE_P(
    Applications, Applications,
    testing::Values(Case{"smith_waterman", 2, {"--rows", "800", "--columns", "700", "--blocks", "400"}},
                    Case{"smith_waterman", 4, {"--rows", "800", "--columns", "700", "--blocks", "400"}},
                    Case{"lu", 2, {"--order", "600", "--block", "4"}},
                    Case{"lu", 4, {"--order", "600", "--block", "4"}},
                    Case{"fractal", 2, {"--width", "80", "--height", "1200", "--range", "4"}},
                    Case{"fractal", 4, {"--width", "80", "--height", "1200", "--range", "4"}},
                    Case{"smith_waterman", 4, {"--rows", "800", "--columns", "700", "--blocks", "400"}, 2},
                    Case{"lu", 4, {"--order", "600", "--block", "4"}, 4},
                    Case{"fractal", 4, {"--width", "80", "--height", "1200", "--range", "4"}, 2}),
    [](const auto& tested) {
      const Case& c = tested.param;
      return std::format("{}{}{}", c.program, c.ranks, c.seats > 1 ? std::format("in{}s", c.seats) : "");
    });

}  // namespace
}  // namespace bsp::test
