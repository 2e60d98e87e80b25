// bsp-simulate as a user runs it: output, timeline, records and errors.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/record/line.h"
#include "operator/record/replay.h"

namespace bsp::sim::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

struct Ran {
  int status = -1;
  std::string output;  // stdout and stderr
};

Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ran.output.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class Command : public testing::Test {
 protected:
  Command() : directory_(std::filesystem::path(testing::TempDir()) / std::format("simulate-{}", ::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~Command() override { std::filesystem::remove_all(directory_); }

  Ran simulate(const std::string& arguments) { return run(kBin + "/bsp-operator simulate " + arguments); }
  std::string in_directory(const std::string& name) { return (directory_ / name).string(); }

  const std::string kBin = BSP_BINARY_DIR "/bin";
  const std::string kJob = "-f " BSP_SOURCE_DIR "/examples/lattice-boltzmann.yaml ";
  const std::string kPools = "--pools slow=2x0.2,fast=4x0.4 ";
  const std::string kLattice = "--application lattice-boltzmann:supersteps=60,instructions=4e9 ";
  std::filesystem::path directory_;
};

TEST_F(Command, PrintsTheThreeScenariosAndEveryCallWithItsReasons) {
  const Ran ran = simulate(kJob + kPools + kLattice + "--mig 0.1 --call 0.05");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("(i)   the application alone"), HasSubstr("(ii)  deciding, not moving"),
                                HasSubstr("(iii) with moves")));
  EXPECT_THAT(ran.output, HasSubstr("starts on slow 2, fast 2"));
  EXPECT_THAT(ran.output, HasSubstr("call after superstep 4: Auto moves 2 of 4 ranks"));
  EXPECT_THAT(ran.output, HasSubstr("and ends on fast 4"));
  EXPECT_THAT(ran.output, HasSubstr("stay rank 2: BestSetIsOwn"));
}

TEST_F(Command, TheNumbersAreConsistent) {
  const Ran ran = simulate(kJob + kPools + kLattice + "--heuristic AutoMig --mig 0.1 --call 0.05 -o json");
  ASSERT_EQ(ran.status, 0) << ran.output;
  const json out = json::parse(ran.output);
  const double i = out["alone"]["makespanSeconds"], ii = out["deciding"]["makespanSeconds"],
               iii = out["migrating"]["makespanSeconds"];
  EXPECT_NEAR(i, 60 * (5 + 0.00043), 0.1);  // 10⁹ instructions at 0.2·10⁹/s, and a border at 300 MB/s
  EXPECT_NEAR(ii - i, 0.05 * static_cast<double>(out["deciding"]["calls"].size()), 1e-6);
  EXPECT_LT(iii, i);
  EXPECT_NEAR(out["gain"].get<double>(), 1 - iii / i, 1e-9);
  EXPECT_NEAR(out["overhead"].get<double>(), ii / i - 1, 1e-9);
  EXPECT_EQ(out["migrating"]["moves"], 2);
  EXPECT_EQ(out["migrating"]["calls"][0]["moves"][0]["toSet"], "fast");
  const json& call = out["migrating"]["calls"][0];
  EXPECT_EQ(call["chosenLevel"], 2);
  EXPECT_FALSE(call["levels"][0].contains("rank")) << "level 0 moves no rank";
  EXPECT_EQ(call["levels"][2]["rank"], call["moves"][1]["rank"]);
  EXPECT_EQ(call["levels"][2]["pfSeconds"], call["objective"]["afterSeconds"]);
}

TEST_F(Command, OptionOverridesTheManifestsHeuristic) {
  EXPECT_THAT(simulate(kJob + kPools + kLattice + "--heuristic Top").output, HasSubstr("Top moves 1 of 4 ranks"));
}

TEST_F(Command, ASimGridFileIsAPlatform) {
  const Ran ran = simulate(kJob + "--platform " BSP_SOURCE_DIR "/examples/platform.xml " + kLattice);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("slow (6 nodes), fast (4 nodes)"));
  EXPECT_THAT(ran.output, HasSubstr("and ends on fast 4"));
}

TEST_F(Command, DrawsRanksOverSets) {
  const std::string svg = in_directory("run.svg");
  ASSERT_EQ(simulate(kJob + kPools + kLattice + "--timeline " + svg).status, 0);
  const std::string picture = file_text(svg);
  EXPECT_THAT(picture, AllOf(HasSubstr("<svg "), HasSubstr("</svg>"),
                             HasSubstr("rank 0 moves from slow-0 to fast-2 after superstep 4"), HasSubstr(">slow<"),
                             HasSubstr(">fast<"), HasSubstr("(i) ends")));
  EXPECT_EQ(count_of(picture, "<g"), count_of(picture, "</g>"));
  EXPECT_EQ(count_of(picture, "moves from"), 2u);
  // It must be well-formed XML.
  const Ran parsed = run("python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " + svg);
  EXPECT_EQ(parsed.status, 0) << parsed.output;
}

TEST_F(Command, RecordedCallsReplayBitForBit) {
  const std::string file = in_directory("run.jsonl");
  ASSERT_EQ(simulate(kJob + kPools + kLattice + "--record " + file).status, 0);
  std::ifstream lines(file);
  int calls = 0;
  for (std::string line; std::getline(lines, line); ++calls) {
    const auto call = record::from_line(line);
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_EQ(call->job, "lattice-boltzmann");
    const auto plan = record::replay(*call, call->params);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(record::difference(call->plan, *plan), "");
  }
  EXPECT_GT(calls, 1);
}

TEST_F(Command, ReplaysARecordedRun) {
  const std::string file = in_directory("run.jsonl");
  ASSERT_EQ(simulate(kJob + kPools + kLattice + "--record " + file).status, 0);
  const Ran ran = simulate(kJob + kPools + "-o json --application trace:file=" + file);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const json out = json::parse(ran.output);
  const int supersteps = out["supersteps"];
  EXPECT_GE(supersteps, 10);  // calls after 5 and 10 at least
  EXPECT_NEAR(out["alone"]["makespanSeconds"].get<double>() / supersteps, 5, 0.01);
  EXPECT_EQ(out["migrating"]["moves"], 2);
  EXPECT_THAT(simulate(kJob + kPools + "--application trace:file=/nowhere.jsonl").output, HasSubstr("/nowhere.jsonl"));
  EXPECT_THAT(simulate("-f " BSP_SOURCE_DIR
                       "/examples/imbalanced-program.yaml --pools small=3x1,large=1x1 --application trace:file=" +
                       file)
                  .output,
              HasSubstr("spec.ranks is 3, but the run in " + file + " had 4 ranks"));
}

// A record names the Set but not the senders: assumes the four ranks of that Set with the nearest numbers.
TEST_F(Command, TraceOfManyRanksHasFewMessages) {
  const std::string file = in_directory("many.jsonl"), job = in_directory("many.yaml");
  std::ofstream(job) << "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: j}\nspec:\n  ranks: 60\n"
                        "  rescheduling: {alpha: 5}\n  template: {spec: {nodeSelector: {x: y}, "
                        "containers: [{name: app, image: x, command: [y]}]}}\n";
  const std::string many = "-f " + job + " --pools a=60x1 ";
  ASSERT_EQ(simulate(many + "--application lattice-boltzmann:supersteps=20 --record " + file).status, 0);
  const Ran ran = simulate(many + "-o json --application trace:file=" + file);
  ASSERT_EQ(ran.status, 0) << ran.output;
  const json out = json::parse(ran.output);
  // Each of 60 ranks but the first receives from one.
  EXPECT_EQ(out["alone"]["messages"].get<int>(), 59 * 4 * out["supersteps"].get<int>());
}

TEST_F(Command, BadInputNamesTheMistakeAndTheRemedy) {
  const auto wrong = [this](const std::string& arguments) {
    const Ran ran = simulate(arguments);
    EXPECT_NE(ran.status, 0) << arguments;
    return ran.output;
  };
  EXPECT_THAT(wrong(""), HasSubstr("usage: bsp-operator simulate"));
  const Ran help = simulate("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("usage: bsp-operator simulate"), HasSubstr("  smith-waterman"),
                                 HasSubstr("    file=…"), HasSubstr("a file written by --record")));
  EXPECT_THAT(wrong(kJob + kLattice), HasSubstr("give either --platform or --pools"));
  EXPECT_THAT(wrong(kJob + kPools), HasSubstr("--application is missing: what the job computes"));
  EXPECT_THAT(wrong(kJob + kPools + "--application latice-boltzmann"), HasSubstr("did you mean lattice-boltzmann?"));
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--heuristic Topp"), HasSubstr("Topp"));
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--mig soon"),
              HasSubstr("--mig \"soon\": must be a number from 0 to 1000000"));
  EXPECT_THAT(wrong(kJob + "--pools slow=2x0.2,faster=4x0.4 " + kLattice),
              HasSubstr("spec.sets.names: the platform has no Set fast"));
  EXPECT_THAT(wrong(kJob + "--pools slow=1x0.2,fast=1x0.4 " + kLattice), HasSubstr("or create the job with 2 ranks"));
  EXPECT_THAT(wrong(kJob + "--platform /nowhere.xml " + kLattice), HasSubstr("/nowhere.xml does not exist"));
  EXPECT_THAT(wrong(kJob + "--platform / " + kLattice), HasSubstr("--platform: / is not a file"));
  EXPECT_THAT(wrong(kJob + "--pools '' " + kLattice), HasSubstr("--pools \"\": must not be empty"));
  EXPECT_THAT(wrong(kJob + kPools + "--application lu:order=0"), HasSubstr("lu:order must be a whole number from 1"));
  EXPECT_THAT(wrong(kJob + kPools + "--application lattice-boltzmann:supersteps=1000000000"),
              HasSubstr("lattice-boltzmann:supersteps must be a whole number from 1 to 100000000"));
  EXPECT_THAT(wrong("-f /nowhere.yaml " + kPools + kLattice), HasSubstr("/nowhere.yaml"));
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--timeline /nowhere/run.svg"), HasSubstr("/nowhere/run.svg"));
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--record -"), HasSubstr("--record: - is no file here"));
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--record /"), HasSubstr("--record: / is a directory"));
  const std::string one = in_directory("one");
  EXPECT_THAT(wrong(kJob + kPools + kLattice + "--record " + one + " --timeline " + one), HasSubstr("can't be both"));
  EXPECT_FALSE(std::filesystem::exists(one));
}

// Platforms that SimGrid accepts but that would make a simulation meaningless.
TEST_F(Command, UnusablePlatformSaysWhatToChange) {
  const std::string file = in_directory("platform.xml");
  const std::string hosts =
      "<host id='a' speed='1Gf'><prop id='set' value='slow'/></host>"
      "<host id='b' speed='4Gf'><prop id='set' value='fast'/></host><link id='l' bandwidth='1MBps' latency='50us'/>";
  const std::string route = "<route src='a' dst='b'><link_ctn id='l'/></route>";
  const auto outcome_of = [&](const std::string& inner, int status) {
    std::ofstream(file) << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                        << "<platform version='4.1'><zone id='w' routing='Full'>" << inner << "</zone></platform>\n";
    const Ran ran = simulate(kJob + "--platform " + file + " " + kLattice);
    EXPECT_EQ(ran.status, status) << ran.output;
    return ran.output;
  };
  const auto error_of = [&](const std::string& inner) { return outcome_of(inner, 2); };
  const auto with = [](std::string text, const std::string& a, const std::string& b) {
    return text.replace(text.find(a), a.size(), b);
  };
  EXPECT_THAT(outcome_of(hosts + route, 0), HasSubstr("on slow (1 node), fast (1 node)"));
  EXPECT_THAT(error_of(hosts), HasSubstr("no route from host a to host b: add a <route>"));
  EXPECT_THAT(error_of(with(hosts, "1MBps", "0Bps") + route),
              HasSubstr("link l, from host a to host b: the bandwidth must be above 0"));
  EXPECT_THAT(error_of(with(hosts, "1Gf", "inf") + route), HasSubstr("host a: the speed must be a number above 0"));
  EXPECT_THAT(error_of(with(hosts, "speed='1Gf'", "speed='1Gf' speed_file='p'") + route),
              HasSubstr("speed_file is not supported"));
  outcome_of(hosts + "<!-- speed_file='p' -->" + route, 0);
  const std::string watts = "<prop id='wattage_per_state' value='1:2'/>", set = "<prop id='set' value='slow'/>";
  outcome_of(with(hosts, set, set + watts) + route, 0);
  EXPECT_THAT(error_of(with(hosts, set, set + "<prop id='slot' value='1'/>") + route),
              HasSubstr("host a: property slot; did you mean slots?"));
}

TEST_F(Command, TraceMustBeOfOneRun) {
  const std::string file = in_directory("run.jsonl"), both = in_directory("both.jsonl");
  ASSERT_EQ(simulate(kJob + kPools + kLattice + "--record " + file).status, 0);
  std::ofstream(both) << file_text(file) << file_text(file);
  const Ran twice = simulate(kJob + kPools + "--application trace:file=" + both);
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.output, HasSubstr("two runs in one file, or lines out of order"));
  std::string other = file_text(file);
  const std::string name = "\"job\":\"lattice-boltzmann\"";
  other.replace(other.find(name), name.size(), "\"job\":\"lattice\"");
  std::ofstream(both) << file_text(file) << other.substr(0, other.find('\n') + 1);
  const Ran others = simulate(kJob + kPools + "--application trace:file=" + both);
  EXPECT_EQ(others.status, 2);
  EXPECT_THAT(others.output, HasSubstr("is of another run than the previous lines (job lattice, attempt 0, 4 ranks)"));
  // A name that isn't valid UTF-8 still gets into JSON and XML.
  const std::string odd = in_directory("odd\xff\x01.jsonl"), svg = in_directory("odd.svg");
  std::filesystem::copy_file(file, odd);
  const Ran ran = simulate(kJob + kPools + "-o json --timeline " + svg + " --application 'trace:file=" + odd + "'");
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(json::accept(ran.output));
  EXPECT_EQ(run("python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " + svg).status, 0);
}

TEST_F(Command, TimelineStaysReadable) {
  const std::string svg = in_directory("long.svg"), job = in_directory("job.yaml");
  const std::string slow = "gke-production-old-n1-standard-4", fast = "gke-production-new-n2-standard-16";
  std::ofstream(job) << "apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: j}\nspec:\n  ranks: 4\n"
                        "  rescheduling: {alpha: 1, heuristic: Top}\n  template: {spec: {nodeSelector: {x: y}, "
                        "containers: [{name: app, image: x, command: [y]}]}}\n";
  // A rank without a free slot: never balanced, so there is a call after every superstep.
  const Ran ran = simulate("-f " + job + " --pools " + slow + "=1x0.2," + fast +
                           "=3x1 --application lattice-boltzmann:supersteps=8000 --timeline " + svg);
  ASSERT_EQ(ran.status, 0);
  ASSERT_THAT(ran.output, HasSubstr("call after superstep 7999"));
  const std::string picture = file_text(svg);
  const auto at = picture.find("text-anchor=\"end\" font-weight=\"bold\">" + slow), x = picture.rfind("x=\"", at);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stod(picture.substr(x + 3)), 6.0 * static_cast<double>(slow.size())) << "it starts inside the picture";
  EXPECT_LT(picture.size(), 300'000u);
}

TEST_F(Command, PlatformWithoutHostsNamesTheRemedy) {
  const std::string file = in_directory("platform.xml");
  std::ofstream(file) << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                         "<platform version=\"4.1\"><zone id=\"cloud\" routing=\"Full\"/></platform>\n";
  const Ran ran = simulate(kJob + "--platform " + file + " " + kLattice);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("no hosts: add a <cluster>"));
}

TEST_F(Command, TruncatedRecordSaysWhere) {
  const std::string file = in_directory("run.jsonl");
  ASSERT_EQ(simulate(kJob + kPools + kLattice + "--record " + file).status, 0);
  const std::string text = file_text(file);
  std::ofstream(file) << text.substr(0, text.find('\n') + 500);
  const Ran again = simulate(kJob + kPools + "--application trace:file=" + file);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("run.jsonl:2: not valid JSON: the line was cut after 499 bytes"));
  const Ran advised = run(kBin + "/bsp-operator advise --brief -f " + file);
  EXPECT_EQ(advised.status, 2);  // complete lines were decided all the same
  EXPECT_THAT(advised.output, AllOf(HasSubstr("decided again: the same plan, bit for bit"),
                                    HasSubstr("run.jsonl:2: not valid JSON: the line was cut after 499 bytes")));
}

TEST_F(Command, HelpIsNotAnError) {
  for (const std::string option : {"--help", "-h"})
    for (const std::string command :
         {"simulate", "advise", "controller", "submit", "local run", "local get", "local describe", "local logs",
          "local migrate", "local checkpoint", "local delete"}) {
      const Ran ran = run(std::format("{}/bsp-operator {} {}", kBin, command, option));
      EXPECT_EQ(ran.status, 0);
      EXPECT_THAT(ran.output, testing::StartsWith("usage: bsp-operator " + command));
    }
}

TEST_F(Command, OperatorReportsAMissingSimulator) {
  std::filesystem::copy(kBin + "/bsp-operator", directory_ / "bsp-operator");
  const Ran ran = run(in_directory("bsp-operator") + " simulate");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr(in_directory("bsp-simulate") + " doesn't exist"));
}

}  // namespace
}  // namespace bsp::sim::test
