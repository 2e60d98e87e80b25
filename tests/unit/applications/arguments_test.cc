// The applications' command lines, and the checksum of their results.
#include "apps/common/arguments.h"

#include <gmock/gmock.h>

#include "apps/common/crc64.h"

namespace apps {
namespace {

using testing::HasSubstr;

struct Parsed : Common {
  std::uint64_t rows = 7;
  int score = -1;
  double omega = 1.5;
  std::map<int, double> work;

  std::vector<Option> table() {
    std::vector<Option> list{whole("--rows", rows, 1, 30, "how many"), whole("--score", score, -9, 0, "what for"),
                             real("--omega", omega, 0, 2, "how much"), factors("--work", work, "whose")};
    for (auto& option : common(*this, "the result")) list.push_back(std::move(option));
    return list;
  }
  std::string error(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    const auto parsed = parse(arguments, table());
    return parsed ? "" : parsed.error();
  }
};

TEST(Arguments, AreStored) {
  Parsed p;
  EXPECT_EQ(
      p.error({"--rows", "30", "--score", "-9", "--omega", "0.25", "--work", "0=2,3=1.5", "--verify", "--output", "x"}),
      "");
  EXPECT_EQ(p.rows, 30u);
  EXPECT_EQ(p.score, -9);
  EXPECT_EQ(p.omega, 0.25);
  EXPECT_EQ(p.work, (std::map<int, double>{{0, 2.0}, {3, 1.5}}));
  EXPECT_TRUE(p.verify && !p.sequential);
  EXPECT_EQ(p.output, "x");
}

TEST(Arguments, ErrorsNameTheOptionAndItsValues) {
  for (const auto& [words, text] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--rwos", "3"}, "--rwos: unknown option; --help lists the options"},
           {{"rows"}, "rows: unknown option"},
           {{""}, ": unknown option"},
           {{"--rows"}, "--rows: missing value; expected a whole number from 1 to 30"},
           {{"--rows", "0"}, "--rows: invalid value '0'; expected a whole number from 1 to 30"},
           {{"--rows", "31"}, "from 1 to 30"},
           {{"--rows", "-1"}, "from 1 to 30"},
           {{"--rows", "3x"}, "from 1 to 30"},
           {{"--rows", "99999999999999999999"}, "from 1 to 30"},
           {{"--score", "1"}, "--score: invalid value '1'; expected a whole number from -9 to 0"},
           {{"--omega", "2"}, "a number above 0 and below 2"},
           {{"--omega", "nan"}, "a number above 0 and below 2"},
           {{"--output", ""}, "--output: invalid value ''"},
           {{"--progress", "0"}, "--progress: invalid value '0'"},
           {{"--work", "1=0.5"}, "pairs RANK=FACTOR"},
           {{"--work", "-1=2"}, "pairs RANK=FACTOR"},
           {{"--work", "1"}, "pairs RANK=FACTOR"}}) {
    EXPECT_THAT(Parsed().error(words), HasSubstr(text)) << testing::PrintToString(words);
  }
}

TEST(Arguments, TheHelpNamesEveryOptionAndItsDefault) {
  Parsed p;
  const std::string help = usage("program", p.table());
  for (const char* text : {"usage: program", "--rows N", "how many (7)", "what for (-1)", "how much (1.5)",
                           "--output FILE", "the result", "--verify", "--sequential", "--progress K"})
    EXPECT_THAT(help, HasSubstr(text));
}

TEST(Arguments, TenLinesOfProgressByDefault) {
  Common c;
  int lines = 0;
  for (std::uint64_t s = 1; s <= 200; ++s) lines += c.line_due(s, 200);
  EXPECT_EQ(lines, 10);
  EXPECT_TRUE(c.line_due(1, 3));
  c.progress = 7;
  EXPECT_TRUE(c.line_due(14, 200) && !c.line_due(15, 200));
}

TEST(Crc64, KnownValue) {  // CRC-64/XZ of "123456789"
  const char text[] = "123456789";
  EXPECT_EQ(crc64(0, std::as_bytes(std::span(text, 9))), 0x995DC9BBDF1939FAu);
}

}  // namespace
}  // namespace apps
