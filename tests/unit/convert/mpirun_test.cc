#include "operator/convert/mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/convert/resources.h"
#include "operator/convert/shell_words.h"

#include <nlohmann/json.hpp>

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Result<MpiRun> read(std::string_view line) {
  BSP_TRY(const std::vector<Word> words, shell_words(line));
  return read_mpirun(words);
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
    EXPECT_EQ(run->ranks, 6U) << option;
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
  for (const auto& [line, message] :
       std::vector<std::pair<std::string, std::string>>{{"-np two prog", "-np is \"two\": write a number"},
                                                        {"-np 0 prog", "at least 1"},
                                                        {"-np $N prog", "-np is $N, which only a shell can expand"},
                                                        {"-np", "-np has no value"},
                                                        {"-np 2", "no program to run"},
                                                        {"--frobnicate prog", "--frobnicate isn't known"},
                                                        {"-np 2 a : -np 2 b", "several programs"}}) {
    const auto run = read(line);
    ASSERT_FALSE(run) << line;
    EXPECT_THAT(run.error().message, HasSubstr(message)) << line;
  }
}

TEST(ShellWords, QuotesAndLines) {
  const auto words = shell_words("set -e\n# run\nexec mpirun \\\n  'a b' \"c $D\" e\\ f --x=\"1 2\"\n");
  ASSERT_TRUE(words) << words.error().message;
  std::vector<std::string> texts;
  for (const Word& word : *words) texts.push_back(word.text);
  EXPECT_THAT(texts, ElementsAre("mpirun", "a b", "c $D", "e f", "--x=1 2"));
  EXPECT_FALSE((*words)[1].expanded);
  EXPECT_TRUE((*words)[2].expanded);
  EXPECT_EQ((*words)[4].source, "--x=\"1 2\"");
}

TEST(ShellWords, MoreThanOneCommandIsRefused) {
  for (const auto& [line, message] :
       std::vector<std::pair<std::string, std::string>>{{"cd /a && mpirun b", "\"&&\""},
                                                        {"mpirun a | tee log", "\"|\""},
                                                        {"mpirun a > log", "\">\""},
                                                        {"sleep 5; mpirun a", "runs \"sleep\" and \"mpirun\""},
                                                        {"mpirun 'a", "nothing closes"},
                                                        {"  ", "is empty"}}) {
    const auto words = shell_words(line);
    ASSERT_FALSE(words) << line;
    EXPECT_THAT(words.error().message, HasSubstr(message)) << line;
  }
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
