// `bsp-operator advise`: what it prints of a recorded run, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/advise/command.h"
#include "operator/advise/options.h"
#include "operator/cli/exit_code.h"
#include "operator/decide/make_plan.h"
#include "operator/record/line.h"
#include "tests/unit/decide/world.h"

namespace bsp::advise {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

// A run of three calls, each after four supersteps: ranks 0 to 2 on slow nodes take 3, 2 and 0.4 s, rank 3 on a fast
// one 1 s; two fast nodes are free. No rank is moved, as in mode Advise.
class Advise : public ::testing::Test {
 protected:
  Advise() {
    const decide::Params params{.heuristic = decide::Heuristic::kTop, .alpha0 = 4, .migrates = false};
    decide::World world({{"slow", 3, 5e8, 1}, {"fast", 3, 1e9, 1}}, {0, 1, 2, 3});
    world.instructions[0] = 1.5e9;
    world.instructions[2] = 0.2e9;
    decide::State state;
    for (int n = 0; n < 3; ++n) {
      record::Call call{.name_space = "science",
                        .job = "lattice",
                        .uid = "u",
                        .time = "2026-11-21T19:40:00Z",
                        .params = params,
                        .snapshot = world.snapshot,
                        .state = state};
      decide::Window window(state, params, 4, 2);
      for (std::uint64_t t = window.cadence().k.value; !window.call_due(); ++t) {
        call.supersteps.push_back(world.superstep(t));
        window.add(world.superstep(t));
      }
      call.plan = *decide::make_plan(call.snapshot, window, params);
      state = std::move(window).close(call.plan.next);
      calls.push_back(call);
      write(record::to_line(call));
    }
  }
  ~Advise() override { std::filesystem::remove(file); }

  void write(const std::string& line) { std::ofstream(file, std::ios::app) << line << '\n'; }

  // What it prints; its exit status and errors stay here.
  std::string advise(Words options) {
    options.insert(options.begin(), {"-f", file});
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto ended = run(options);
    status = ended ? *ended : cli::report_error(ended.error());
    errors = testing::internal::GetCapturedStderr();
    return testing::internal::GetCapturedStdout();
  }

  const std::string file = testing::TempDir() + "bsp_advise_" + std::to_string(::getpid());
  std::vector<record::Call> calls;
  int status = -1;
  std::string errors;
};

TEST_F(Advise, UnderTheRecordedParametersEveryPlanIsTheSame) {
  const std::string text = advise({});
  EXPECT_EQ(status, 0) << errors;
  EXPECT_EQ(errors, "");
  EXPECT_THAT(text,
              HasSubstr(file + ":1  science/lattice  2026-11-21T19:40:00Z\n"
                               "  advised: call after superstep 4: Top moves 1 of 4 ranks, time of the moved ranks"));
  std::size_t same = 0;
  for (std::size_t at = 0; (at = text.find("decided again: the same plan, bit for bit", at)) != std::string::npos; ++at)
    ++same;
  EXPECT_EQ(same, 3u);
  EXPECT_THAT(text, HasSubstr("    stay rank 3: BestSetIsOwn: no Set has a higher PM than its own, fast"));
  EXPECT_THAT(text, HasSubstr("as recorded   3       3           3       "));
}

TEST_F(Advise, AnotherHeuristicStandsBesideWhatWasDone) {
  const std::string text = advise({"--heuristic", "AutoMig", "--brief"});
  EXPECT_EQ(status, 0) << errors;
  EXPECT_THAT(text, HasSubstr("  would have: call after superstep 4: AutoMig moves 2 of 4 ranks, pf "));
  EXPECT_THAT(text, HasSubstr("  RANK   IS ON         Top ADVISED           AutoMig WOULD HAVE\n"
                              "  0      slow/slow-0   fast/fast-1           fast/fast-1\n"
                              "  1      slow/slow-1   stays: NotCandidate   fast/fast-2\n"));
  EXPECT_THAT(text, Not(HasSubstr("PM list"))) << "--brief";
  EXPECT_THAT(text, HasSubstr("AutoMig       3       3           6 "));
  EXPECT_THAT(text, HasSubstr("this compares\ndecisions, and is no forecast of a whole run"));
}

TEST_F(Advise, AllHeuristicsAreATable) {
  const std::string text = advise({"--heuristic=all"});
  EXPECT_EQ(status, 0) << errors;
  for (const char* row :
       {"  Top (recorded)   4       1       ", "  Bottleneck       4 ", "\nMigHull ", "\nPercentage "})
    EXPECT_THAT(text, HasSubstr(row));
}

// With alpha 1 and a D that nothing satisfies a call follows every superstep.
TEST_F(Advise, OtherWindowsMakeOtherCalls) {
  const json j = json::parse(advise({"--alpha", "1", "--d", "0.001", "-o", "json"}));
  EXPECT_EQ(status, 0) << errors;
  EXPECT_EQ(j["schema"], "migbsp.io/advice/v1");
  std::vector<std::uint64_t> after;
  for (const json& call : j["calls"])
    for (const json& plan : call["answers"][0]["plans"]) after.push_back(plan["superstep"].get<std::uint64_t>());
  std::vector<std::uint64_t> every(calls.back().plan.superstep.value);
  for (std::size_t t = 0; t < every.size(); ++t) every[t] = t + 1;
  EXPECT_EQ(after, every);
  EXPECT_EQ(j["summary"][1]["calls"], every.size());
  EXPECT_FALSE(j["calls"][0]["answers"][0].contains("same")) << "it was asked for something else";
}

TEST_F(Advise, JsonHasWhatAutoWeighedBy) {
  const json j = json::parse(advise({"--heuristic", "Auto", "-o", "json"}));
  EXPECT_EQ(status, 0) << errors;
  const json& rules = j["calls"][0]["answers"][0]["plans"][0]["rules"];
  EXPECT_GT(rules["superstepsToCome"], 0);
  EXPECT_EQ(rules["takesBack"], false);
}

// Their supersteps would be put into one window.
TEST_F(Advise, OtherWindowsNeedTheCallsInOrder) {
  write(record::to_line(calls[2]));  // recorded twice, as by an operator that was restarted
  advise({"--alpha", "3", "--brief"});
  EXPECT_EQ(status, 0) << errors;
  write(record::to_line(calls[0]));
  advise({"--alpha", "3", "--brief"});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(errors, HasSubstr(file + ":5: plan.superstep: is 4, and the call before was after"));
  EXPECT_THAT(errors, HasSubstr("two runs in one file, or lines out of order"));
}

TEST_F(Advise, AsJson) {
  const json j = json::parse(advise({"-ojson"}));
  ASSERT_EQ(j["calls"].size(), 3u);
  const json& call = j["calls"][0];
  EXPECT_EQ(call["where"], file + ":1");
  EXPECT_EQ(call["answers"][0]["same"], true);
  EXPECT_EQ(call["answers"][0]["plans"][0], call["recorded"]);
  EXPECT_EQ(call["recorded"]["moves"][0]["to"], "fast/fast-1");
  EXPECT_EQ(call["recorded"]["stays"][0]["reason"], "NotCandidate");
  EXPECT_EQ(call["recorded"]["pmList"].size(), calls[0].plan.pm_list.size());
  EXPECT_TRUE(call["recorded"]["rules"].is_null()) << "they are Auto's";
  EXPECT_EQ(j["summary"][0]["moves"], 3);
}

TEST_F(Advise, ReportsLinesThatAreNotRecordsAndUsesTheOthers) {
  write("");
  write(record::to_line(calls[0]).substr(0, 200));
  json changed = json::parse(record::to_line(calls[0]));
  changed["params"]["heuristc"] = "Top";
  write(changed.dump());
  write(record::to_line(calls[2]));
  const std::string text = advise({"--brief"});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(errors, HasSubstr("bsp-operator: " + file +
                                ":5: not valid JSON: the line was cut after 200 bytes; take it out\n"));
  EXPECT_THAT(errors,
              HasSubstr("bsp-operator: " + file + ":6: params.heuristc: unknown field; did you mean heuristic?"));
  EXPECT_THAT(text, HasSubstr("as recorded   4  "));
}

TEST_F(Advise, StopsAfterTheFirstWrongLines) {
  for (int i = 0; i < 1000; ++i) write("{broken");
  advise({"--brief"});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(errors, HasSubstr(file + ":8: not valid JSON"));
  EXPECT_THAT(errors, Not(HasSubstr(file + ":9: ")));
  EXPECT_THAT(errors, EndsWith(file + ": stopped after 5 wrong lines; is it a record of this version?\n"));
}

// As if another version of the program had decided.
TEST_F(Advise, ReportsAPlanThatIsNotMadeAgain) {
  std::filesystem::remove(file);
  record::Call call = calls[0];
  call.plan.moves[0].to = ProcessorId{call.plan.moves[0].to.value == 4 ? 5u : 4u};
  write(record::to_line(call));
  const std::string text = advise({"--brief"});
  EXPECT_EQ(status, 1);
  EXPECT_THAT(text, HasSubstr("NOT the same plan under the recorded parameters: moves.to[0]: "));
}

TEST_F(Advise, AFileWithoutCallsIsAMistake) {
  std::filesystem::remove(file);
  write("");
  advise({});
  EXPECT_EQ(status, 2);
  EXPECT_THAT(errors, HasSubstr("holds no recorded call; local run --record FILE writes one line for each"));
  std::filesystem::remove(file);
  advise({});
  EXPECT_EQ(status, 1);
  EXPECT_THAT(errors, HasSubstr("reading " + file));
}

TEST(AdviseOptions, MistakesAreNamedWithTheRemedy) {
  for (const auto& [words, what] :
       {std::pair{Words{}, "-f is missing: from local run --record"},
        {Words{"-f", "x", "y"}, "unexpected argument \"y\""},
        {Words{"-f", "x", "--heuristc", "Top"}, "unknown option --heuristc; did you mean --heuristic?"},
        {Words{"-f", "x", "--heuristic", "Best"}, "unknown heuristic 'Best': use one of Top,"},
        {Words{"-f", "x", "--heuristic", "Top,"}, "unknown heuristic ''"},
        {Words{"-f", "x", "--alpha", "2.5"}, "--alpha \"2.5\": must be a whole number"},
        {Words{"-f", "x", "--alpha", "0"}, "--alpha must be at least 1, is 0"},
        {Words{"-f", "x", "--d", "2"}, "--d must be above 0 and below 1, is 2"},
        {Words{"-f", "x", "--x", "most"}, "--x \"most\": must be a number"},
        {Words{"-f", "x", "--delta", "nan"}, "--delta must be at least 0"},
        {Words{"-f", "x", "--horizon", "day"}, "--horizon \"day\": must be Window or Superstep"},
        {Words{"-f", "x", "-o", "yaml"}, "-o \"yaml\": must be text or json"}}) {
    const auto o = parse_options(words);
    ASSERT_FALSE(o) << what;
    EXPECT_EQ(o.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(o.error().message, HasSubstr(what));
    EXPECT_THAT(o.error().message, HasSubstr("usage: bsp-operator advise"));
  }
}

}  // namespace
}  // namespace bsp::advise
