// Platforms from files, from --pools and from code; errors name the remedy.
#include <gmock/gmock.h>

#include <unistd.h>

#include <filesystem>
#include <format>
#include <fstream>

#include "sim/scenario.h"
#include "tests/sim/engine_fixture.h"

namespace bsp::sim::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Each test has its own platform file.
class PlatformFile : public testing::Test {
 protected:
  Result<Platform> read(const std::string& zones) {
    path_ = std::filesystem::path(testing::TempDir()) / std::format("platform-{}.xml", ::getpid());
    std::ofstream(path_) << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                            "<platform version=\"4.1\">"
                         << zones << "</platform>\n";
    return read_platform_file(path_);
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove(path_);
  }
  std::filesystem::path path_;
};

const std::string kTwoZones = R"(
  <zone id="world" routing="Full">
    <prop id="mig" value="0.25"/><prop id="barrier_per_outsider" value="6.5e-5"/><prop id="call" value="10=0.333,25=0.656"/>
    <cluster id="old" prefix="old-" suffix="" radical="0-1" speed="1Gf" bw="100MBps" lat="1ms"/>
    <zone id="new" routing="Full">
      <prop id="set" value="quick"/>
      <prop id="mig" value="9"/>
      <host id="n0" speed="2Gf"><prop id="slots" value="1"/><prop id="load" value="0.5"/></host>
      <host id="n1" speed="2Gf" core="2"/>
      <link id="wire" bandwidth="200MBps" latency="0"/>
      <route src="n0" dst="n1"><link_ctn id="wire"/></route>
    </zone>
    <link id="up" bandwidth="50MBps" latency="0"/>
    <zoneRoute src="old" dst="new" gw_src="old-old_router" gw_dst="n0"><link_ctn id="up"/></zoneRoute>
  </zone>)";

TEST_F(PlatformFile, DefinesSetsNodesCostsAndBandwidths) {
  const auto platform = read(kTwoZones);
  ASSERT_TRUE(platform) << platform.error().message;
  ASSERT_EQ(platform->sets.size(), 2u);
  EXPECT_EQ(platform->sets[0].name, "old");
  EXPECT_EQ(platform->sets[1].name, "quick");
  std::vector<std::string> names;
  for (const Node& node : platform->sets[1].nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("n0", "n1-0", "n1-1"));
  EXPECT_EQ(platform->sets[1].nodes[0].slots, 1u);
  EXPECT_EQ(platform->sets[1].nodes[0].load, 0.5);
  EXPECT_EQ(platform->sets[1].nodes[1].slots, 1u);
  EXPECT_EQ(platform->sets[0].nodes[0].slots, 0u);
  EXPECT_EQ(platform->mig_seconds, 0.25);
  EXPECT_EQ(platform->barrier.per_outsider, 6.5e-5);
  EXPECT_DOUBLE_EQ(platform->call.seconds(25), 0.656);
  const auto nodes = decision_platform(*platform);
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_DOUBLE_EQ((nodes->T[0, 0]), 1e-8);
  EXPECT_DOUBLE_EQ((nodes->T[0, 1]), 2e-8);
  EXPECT_DOUBLE_EQ((nodes->T[1, 1]), 5e-9);
}

TEST_F(PlatformFile, ItsHostsComputeAndItsRoutesCarry) {
  const auto platform = read(kTwoZones);
  ASSERT_TRUE(platform) << platform.error().message;
  // old-0 sends to n1-1 while n0, half loaded, and both cores of n1 compute.
  const Simulated t =
      simulated(*platform, {.instructions = {0, 1e9, 1e9, 1e9}, .messages = {message(0, 3, 1e6)}}, on({0, 2, 3, 4}));
  EXPECT_NEAR(t.compute_seconds[1], 1, 2e-9);
  EXPECT_NEAR(t.compute_seconds[2], 0.5, 2e-9);
  EXPECT_NEAR(t.compute_seconds[3], 0.5, 2e-9);
  EXPECT_NEAR((t.recv_seconds[3, 0]), 1e6 / 50e6 + 0.001, 2e-9);
}

TEST_F(PlatformFile, NodesAreInNaturalOrder) {
  const auto platform = read(
      "<zone id=\"w\" routing=\"Full\"><cluster id=\"c\" prefix=\"c-\" suffix=\"\" radical=\"0-11\" speed=\"1Gf\" "
      "bw=\"1MBps\" lat=\"0\"/></zone>");
  ASSERT_TRUE(platform) << platform.error().message;
  ASSERT_EQ(platform->sets[0].nodes.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(platform->sets[0].nodes[i].name, std::format("c-{}", i));
}

TEST_F(PlatformFile, ARouteToAnUnknownPlaceNamesThatPlaceOnly) {
  const auto error = [this](const std::string& end, const std::string& wrong) {
    std::string zones = kTwoZones;
    zones.replace(zones.find(end), end.size(), wrong);
    const auto platform = read(zones);
    return platform ? std::string("no error") : platform.error().message;
  };
  EXPECT_THAT(
      error("gw_src=\"old-old_router\"", "gw_src='old-new_router'"),
      AllOf(HasSubstr("gw_src=\"old-new_router\" is no host, router or zone of it; did you mean old-old_router?"),
            Not(HasSubstr("'n0'"))));
  EXPECT_THAT(error("gw_dst=\"n0\"", "gw_dst=\"nowhere\""),
              HasSubstr("gw_dst=\"nowhere\" is no host, router or zone of it ("));
  EXPECT_THAT(error(" dst=\"new\"", " dst=\"knew\""),
              HasSubstr("dst=\"knew\" is no host, router or zone of it; did you mean new?"));
}

TEST_F(PlatformFile, ErrorsNameThePlace) {
  const auto error = [this](const std::string& zones) {
    const auto platform = read(zones);
    return platform ? std::string("no error") : platform.error().message;
  };
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Full\">"), AllOf(HasSubstr(path_.string()), HasSubstr("XML")));
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Sideways\"/>"), HasSubstr("examples/platform.xml"));
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"fast\"/></zone>"), HasSubstr("fast"));
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Full\"/>"), HasSubstr("it has no hosts"));
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"><prop id=\"load\" "
                    "value=\"busy\"/></host></zone>"),
              HasSubstr("host a: property load is \"busy\"; write a share of at least 0 and below 1"));
  EXPECT_THAT(
      error(
          "<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"><prop id=\"load\" value=\"1\"/></host></zone>"),
      HasSubstr("node a: load must be at least 0 and below 1, is 1"));
  EXPECT_THAT(
      error("<zone id=\"w\" routing=\"Full\"><prop id=\"call\" value=\"10:3\"/><host id=\"a\" speed=\"1Gf\"/></zone>"),
      HasSubstr("property call is \"10:3\"; write RANKS=SECONDS"));
  EXPECT_THAT(error("<zone id=\"w\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\" core=\"2\"><prop id=\"slots\" "
                    "value=\"3\"/></host></zone>"),
              HasSubstr("remove the property slots"));
  EXPECT_THAT(read_platform_file("/nowhere.xml").error().message, HasSubstr("/nowhere.xml does not exist"));
}

TEST(Platform, TheExampleIsReadAndHasBothPoolsOfTheExampleJob) {
  const auto platform = read_platform_file(BSP_SOURCE_DIR "/examples/platform.xml");
  ASSERT_TRUE(platform) << platform.error().message;
  const auto chosen = with_sets(*platform, {"slow", "fast"});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->sets[0].nodes.size(), 6u);
  EXPECT_EQ(chosen->sets[1].nodes.size(), 4u);
  EXPECT_GT((chosen->file_T[0, 0]), (chosen->file_T[1, 1]));
}

TEST(Platform, ReadsPoolsLikeLocalMode) {
  const auto platform = platform_of_pools("slow=3x0.25,fast=2x0.6");
  ASSERT_TRUE(platform) << platform.error().message;
  EXPECT_EQ(platform->sets[1].nodes[1].name, "fast-1");
  EXPECT_DOUBLE_EQ(platform->sets[1].nodes[1].speed, 0.6e9);
  EXPECT_EQ(platform->sets[1].nodes[1].slots, 1u);
  EXPECT_THAT(platform_of_pools("slow=3").error().message, HasSubstr("write NAME=NODESx[SLOTSx]CPU"));
}

TEST(Platform, SelectsSetsLikeTheOperator) {
  const Platform platform = two_sets();
  const auto chosen = with_sets(platform, {"b", "a"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->sets[0].name, "b");
  EXPECT_THAT(with_sets(platform, {"a", "bb"}).error().message, AllOf(HasSubstr("spec.sets.names"), HasSubstr("bb")));
  Platform reversed = platform;
  std::swap(reversed.sets[0], reversed.sets[1]);
  EXPECT_EQ(with_sets(reversed, {})->sets[0].name, "a");
}

TEST(Platform, NamesUnconnectedSets) {
  Platform platform = two_sets();
  platform.sets[1].router = "elsewhere";
  EXPECT_THAT(decision_platform(platform).error().message,
              AllOf(HasSubstr("no route from Set a to Set b"), HasSubstr("elsewhere")));
}

TEST(Platform, CallCostsInterpolateThePoints) {
  const CallCost cost{.points = {{10, 0.3}, {50, 0.7}}, .factor = 2};
  EXPECT_DOUBLE_EQ(cost.seconds(5), 0.3);
  EXPECT_DOUBLE_EQ(cost.seconds(10), 0.6);
  EXPECT_DOUBLE_EQ(cost.seconds(30), 1.0);
  EXPECT_DOUBLE_EQ(cost.seconds(200), 1.4);
  EXPECT_EQ(CallCost{}.seconds(10), 0);
}

TEST(Platform, UsesTheOperatorsInitialMapping) {
  EXPECT_EQ(*initial_mapping(two_sets(), decide::Mapping::kContiguous, 5), on({0, 1, 2, 3, 0}));
  EXPECT_THAT(initial_mapping(*platform_of_pools("only=2x1"), decide::Mapping::kContiguous, 3).error().message,
              HasSubstr("3 ranks need 3 slots"));
}

// --- Applications by name ------------------------------------------------------------------------------------------

std::vector<Application> table() {
  return {{.name = "steady",
           .summary = "the same again and again",
           .parameters = {{"work", "1e9", "instructions of each rank"}, {"supersteps", "", "how many"}},
           .make = [](std::uint32_t ranks, const Parameters& parameters) -> Result<std::unique_ptr<Workload>> {
             BSP_TRY(const double work, parameters.number("work", 1));
             BSP_TRY(const std::uint64_t supersteps, parameters.whole("supersteps", 1, 1000));
             return std::make_unique<Script>(std::vector<Demand>{{.instructions = std::vector<double>(ranks, work)}},
                                             supersteps);
           }}};
}

TEST(Applications, AreCreatedFromNameAndParameters) {
  const auto workload = make_workload(table(), "steady:supersteps=7,work=2.5e8", 3);
  ASSERT_TRUE(workload) << workload.error().message;
  Demand demand;
  (*workload)->demand(1, demand);
  EXPECT_THAT(demand.instructions, ElementsAre(2.5e8, 2.5e8, 2.5e8));
  EXPECT_EQ((*workload)->supersteps(), 7u);
}

TEST(Applications, ErrorsListTheChoices) {
  const auto error = [](const char* choice) { return make_workload(table(), choice, 3).error().message; };
  EXPECT_THAT(error("stedy:supersteps=7"), AllOf(HasSubstr("stedy"), HasSubstr("did you mean steady?")));
  EXPECT_THAT(error("steady:superstep=7"),
              AllOf(HasSubstr("no parameter superstep"), HasSubstr("did you mean supersteps?")));
  EXPECT_THAT(error("steady"), HasSubstr("needs supersteps: how many"));
  EXPECT_THAT(error("steady:supersteps"), HasSubstr("has no '='"));
  EXPECT_THAT(error("steady:supersteps=7,supersteps=8"), HasSubstr("given twice"));
  EXPECT_THAT(error("steady:supersteps=0"), HasSubstr("supersteps must be a whole number from 1 to 1000, is \"0\""));
  EXPECT_THAT(error("steady:supersteps=7,work=x"), HasSubstr("work must be a number from 1"));
}

}  // namespace
}  // namespace bsp::sim::test
