// What one declared command accepts, rejects and explains.
#include "operator/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cli/exit_code.h"

namespace bsp::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Given {
  std::string file, place = "here", kind, name;
  unsigned workers = 4;
  std::optional<double> share;
  bool waits = false, isolated = true;
};

Result<Given> parse(const Words& words) {
  Given g;
  Command command("program verb", "Does something.");
  command.argument("KIND", "kind of the object", g.kind).required();
  command.argument("NAME", "name of the object", g.name);
  command.text("-f,--filename", "FILE", "a file", g.file).required();
  command.text("--place", "PLACE", "a place (default: here)", g.place);
  command.option("-w,--workers", "N", "number of threads", number(g.workers, 1u, 64u));
  command.option("--share", "X", "a share", number(g.share));
  command.flag("--wait", "wait for the end", g.waits);
  command.flag("-i,--isolated", "isolate it (default: true)", g.isolated);
  BSP_CHECK_OK(command.parse(words));
  return g;
}

std::string error_of(const Words& words) {
  const auto g = parse(words);
  EXPECT_TRUE(g || g.error().code == ErrorCode::kInvalid);
  return g ? "accepted" : g.error().message;
}

TEST(Command, TakesAnOptionInEveryForm) {
  for (const Words& words : {Words{"k", "-f", "x", "-w", "7"}, Words{"-fx", "-w7", "k"}, Words{"-f=x", "k", "-w=7"},
                             Words{"--filename", "x", "--workers", "7", "k"}, Words{"--workers=7", "--filename=x", "k"},
                             Words{"-w3", "-fx", "k", "--workers=7"}}) {
    const auto g = parse(words);
    ASSERT_TRUE(g) << g.error().message;
    EXPECT_EQ(g->file, "x");
    EXPECT_EQ(g->workers, 7u);
    EXPECT_EQ(g->place, "here");
    EXPECT_EQ(g->kind, "k");
  }
}

TEST(Command, FlagsAreTrueUnlessTheySayOtherwise) {
  EXPECT_FALSE(parse({"k", "-fx"})->waits);
  EXPECT_TRUE(parse({"k", "-fx"})->isolated);
  EXPECT_TRUE(parse({"k", "-fx", "--wait"})->waits);
  EXPECT_FALSE(parse({"k", "-fx", "--wait", "--wait=false"})->waits);
  EXPECT_FALSE(parse({"k", "-fx", "--isolated=false"})->isolated);
  EXPECT_FALSE(parse({"k", "-fx", "-i=false"})->isolated);
  EXPECT_THAT(error_of({"k", "-fx", "--wait", "false", "more"}), HasSubstr("unexpected argument \"more\""));
}

TEST(Command, AValueMayLookLikeAnOption) {
  EXPECT_EQ(parse({"k", "-f", "-"})->file, "-");
  EXPECT_EQ(parse({"k", "-f", "--wait"})->file, "--wait");
  EXPECT_EQ(parse({"k", "-f", "-w=1"})->file, "-w=1");
  EXPECT_EQ(parse({"k", "--filename=a=b"})->file, "a=b");
  EXPECT_EQ(parse({"k", "-f", "[1,2]"})->file, "[1,2]");
  EXPECT_EQ(parse({"k", "-fx", "--share", "-0.5"})->share, -0.5);
  // A chart may leave a value empty: the next option isn't taken for it.
  EXPECT_THAT(error_of({"k", "-fx", "--place=", "--wait"}), HasSubstr("--place \"\": must not be empty"));
}

TEST(Command, ArgumentsTakeAllWordsThatAreNoOptions) {
  std::vector<std::string> files;
  std::string place;
  Command command("program", "Does something.");
  command.arguments("FILE", "files", files);
  command.text("--place", "PLACE", "a place", place);
  const auto done = command.parse(Words{"a", "--place", "here", "b.csv", "c/d.csv"});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(files, (Words{"a", "b.csv", "c/d.csv"}));
  EXPECT_EQ(place, "here");
  EXPECT_FALSE(command.parse(Words{"a", "--nowhere"}));
}

TEST(Command, AnErrorNamesTheOptionTheRemedyAndTheUsage) {
  const std::string usage = "usage: program verb KIND [NAME] -f FILE [OPTION…]\nprogram verb --help lists all options";
  for (const auto& [words, what] :
       {std::pair{Words{"k"}, "-f is missing: a file\n"},
        {Words{"-fx"}, "KIND is missing: kind of the object\n"},
        {Words{"k", "n", "m", "-fx"}, "unexpected argument \"m\"\n"},
        {Words{"k", "-fx", "--wiat"}, "unknown option --wiat; did you mean --wait?\n"},
        {Words{"k", "-fx", "--wokers=3"}, "unknown option --wokers; did you mean --workers?"},
        {Words{"k", "-f"}, "-f needs a value\n"},
        {Words{"k", "-fx", "-w", "0"}, "-w \"0\": must be a number from 1 to 64\n"},
        {Words{"k", "-fx", "-w", "2x"}, "-w \"2x\": must be a number from 1 to 64\n"},
        {Words{"k", "-fx", "--share", "most"}, "--share \"most\": must be a number\n"},
        {Words{"k", "-fx", "--wait=maybe"}, "--wait \"maybe\": must be true or false\n"},
        {Words{"", "-fx"}, "KIND \"\": must not be empty\n"}})
    EXPECT_THAT(error_of(words), AllOf(HasSubstr(what), HasSubstr(usage)));
}

TEST(Command, HelpEndsTheProgram) {
  EXPECT_EXIT((void)parse({"k", "--help"}), ::testing::ExitedWithCode(kDone), "");
  EXPECT_EXIT((void)parse({"-h"}), ::testing::ExitedWithCode(kDone), "");
}

TEST(ExitCode, SeparatesWrongInputFromFailure) {
  EXPECT_EQ(report_error({.code = ErrorCode::kInvalid, .message = "m"}), kUsage);
  EXPECT_EQ(report_error({.code = ErrorCode::kNotFound, .message = "m"}), kFailed);
  EXPECT_EQ(report_error({.code = ErrorCode::kTimeout, .message = "m"}), kFailed);
}

}  // namespace
}  // namespace bsp::cli
