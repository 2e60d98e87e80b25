#include "operator/convert/mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/convert/resources.h"
#include "operator/convert/script.h"

#include <nlohmann/json.hpp>

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Result<MpiRun> read(std::string_view line) {
  BSP_TRY(const Launch launch, read_script("mpirun " + std::string(line), false, {}));
  return read_mpirun(launch.words);
}

std::vector<std::string> program_of(const MpiRun& run) {
  std::vector<std::string> texts;
  for (const Word& word : run.program) texts.push_back(word.text);
  return texts;
}

TEST(Mpirun, EverySpellingOfTheNumberOfRanks) {
  for (const char* option : {"-n 6", "-np 6", "--np 6", "--n 6", "-c 6", "--np=6"}) {
    const auto run = read(std::string(option) + " ./a -n 7");
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->ranks, Count{.number = 6}) << option;
    EXPECT_THAT(program_of(*run), ElementsAre("./a", "-n", "7"));
  }
}

TEST(Mpirun, EnvironmentAndParameters) {
  const auto run =
      read("-x A=1 -x B=x=y -x PATH --mca io romio341 -mca btl ^openib --mca plm_rsh_args \"-p 2222\" prog");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->environment, ElementsAre(Pair("A", "1"), Pair("B", "x=y"), Pair("OMPI_MCA_io", "romio341")));
  EXPECT_THAT(run->exported, ElementsAre("PATH"));
  ASSERT_EQ(run->dropped.size(), 2U);
  EXPECT_EQ(run->dropped[0].first, "-mca btl ^openib");
}

TEST(Mpirun, WhatHasNoMeaningWithAPodForEachRankIsNotNamed) {
  const auto run = read("--allow-run-as-root --bind-to none --map-by ppr:2:node --oversubscribe -tag-output prog");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->dropped, IsEmpty());
  EXPECT_EQ(run->ranks, std::nullopt);
}

TEST(Mpirun, WrongInputNamesTheOption) {
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"-np two prog", "-np is \"two\": write a number"},
           {"-np 0 prog", "at least 1"},
           {"-np ${N:-2} prog", "-np is ${N:-2}, which only a shell can expand"},
           {"-np", "-np has no value"},
           {"-np 2", "no program to run"},
           {"--frobnicate prog", "--frobnicate isn't known"},
           {"'-x A=1' prog", "\"-x A=1\" is one word"},
           {"-np 2 a : -np 2 b", "several programs"}}) {
    const auto run = read(line);
    ASSERT_FALSE(run) << line;
    EXPECT_THAT(run.error().message, HasSubstr(message)) << line;
  }
}

TEST(Mpirun, ValuesThatOnlyAShellKnowsAreLeftToTheRanks) {
  const auto run = read("-x A=$B -x \"C=$D e\" --mca io $F prog");
  ASSERT_TRUE(run) << run.error().message;
  std::vector<std::string> sources;
  for (const auto& [name, word] : run->assignments) sources.push_back(word.source);
  EXPECT_THAT(sources, ElementsAre("A=$B", "\"C=$D e\"", "OMPI_MCA_io=$F"));
  EXPECT_FALSE(read("-x $VARIABLES prog"));
}

TEST(Mpirun, TransportIsTheOperatorsHoweverItIsWritten) {
  for (const char* option : {"-x OMPI_MCA_btl=tcp", "-x OMPI_MCA_pml", "--mca btl tcp", "-x PRTE_MCA_plm_ssh_args=-p",
                             "-x OMPI_MCA_oob_tcp_if=$A"}) {
    const auto run = read(std::string(option) + " prog");
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_THAT(run->dropped, ElementsAre(Pair(testing::_, HasSubstr("the operator starts and connects")))) << option;
    EXPECT_THAT(run->environment, IsEmpty()) << option;
    EXPECT_THAT(run->exported, IsEmpty()) << option;
  }
  EXPECT_THAT(read("-x OMPI_MCA_coll=^hcoll prog")->environment, ElementsAre(Pair("OMPI_MCA_coll", "^hcoll")));
  EXPECT_THAT(read("-x OMPI_MCA_btlx=1 prog")->environment, ElementsAre(Pair("OMPI_MCA_btlx", "1")));
}

TEST(Mpirun, HostsHaveSlots) {
  for (const auto& [option, hosts, slots] : std::vector<std::tuple<std::string, unsigned, unsigned>>{
           {"-host a,b,c", 3, 3}, {"--host a:2,b", 2, 3}, {"-H a -H b:4", 2, 5}, {"-hosts a,b", 2, 2}}) {
    const auto run = read(option + " prog");
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->hosts, hosts) << option;
    EXPECT_EQ(run->slots, slots) << option;
    EXPECT_EQ(run->unclear, "") << option;
  }
  EXPECT_EQ(read("-host 'a:*' prog")->unclear, "-host a:*");
  EXPECT_EQ(read("--map-by ppr:4:socket prog")->unclear, "--map-by ppr:4:socket");
}

TEST(Resources, AreSharedOutAndRoundedUp) {
  for (const auto& [quantity, parts, share] :
       std::vector<std::tuple<nlohmann::json, unsigned, std::string>>{{2, 4, "500m"},
                                                                      {"3", 2, "1500m"},
                                                                      {"500m", 3, "167m"},
                                                                      {"4Gi", 3, "1398102Ki"},
                                                                      {"4Gi", 4, "1Gi"},
                                                                      {"1.5Gi", 2, "786432Ki"},
                                                                      {"10M", 4, "2500k"},
                                                                      {"3Pi", 2, "1572864Gi"},
                                                                      {"1E", 3, "334P"},
                                                                      {"5P", 2, "2500T"},
                                                                      {"1Ei", 1024, "1024Ti"},
                                                                      {"3u", 2, "1500n"},
                                                                      {1, 1, "1"}})
    EXPECT_EQ(divided("cpu", quantity, parts).value_or("?"), share) << quantity.dump() << " / " << parts;
  EXPECT_FALSE(divided("cpu", "much", 2));
}

TEST(Resources, PagesStayWhole) {
  EXPECT_EQ(divided("hugepages-2Mi", "5120Mi", 8).value_or("?"), "640Mi");
  EXPECT_EQ(divided("hugepages-2Mi", "10Mi", 4).value_or("?"), "4Mi");
  EXPECT_EQ(divided("hugepages-1Gi", "4Gi", 3).value_or("?"), "2Gi");
  EXPECT_FALSE(divided("hugepages-", "4Gi", 3));
  EXPECT_FALSE(divided("hugepages-0Mi", "4Gi", 3));
}

}  // namespace
}  // namespace bsp::convert
