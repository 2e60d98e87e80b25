#include "operator/convert/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ranges>

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> word_texts(const Command& command) {
  std::vector<std::string> all;
  for (const Word& word : command.words) all.push_back(word.text);
  return all;
}

TEST(Shell, QuotesAndContinuedLines) {
  const auto script =
      read_shell("set -e # exit\n# run\nmpirun \\\n  'a b' \"c $D\" e\\ f --x=\"1 2\" \"g\\h\\\"\" ''\n");
  ASSERT_TRUE(script) << script.error().message;
  ASSERT_EQ(script->size(), 2U);
  const Command& mpirun = (*script)[1].commands[0];
  EXPECT_THAT(word_texts(mpirun), ElementsAre("mpirun", "a b", "c $D", "e f", "--x=1 2", "g\\h\"", ""));
  EXPECT_EQ(mpirun.line, 3);
  EXPECT_FALSE(mpirun.words[1].expanded);
  EXPECT_TRUE(mpirun.words[2].expanded);
  EXPECT_EQ(mpirun.words[4].source, "--x=\"1 2\"");
}

TEST(Shell, OperatorsJoinCommands) {
  const auto script = read_shell("a && b || c | d; e & f\n! g |& h 2>&1 > i");
  ASSERT_TRUE(script) << script.error().message;
  std::vector<std::string> next;
  for (const Pipeline& pipeline : *script) next.push_back(pipeline.next);
  EXPECT_THAT(next, ElementsAre("&&", "||", ";", "&", ";", ";"));
  EXPECT_EQ((*script)[2].commands.size(), 2U);
  EXPECT_TRUE((*script)[5].negated);
  const auto& redirections = (*script)[5].commands[1].redirections;
  ASSERT_EQ(redirections.size(), 2U);
  EXPECT_EQ(redirections[0].sign + redirections[0].target.text, "2>&1");
  EXPECT_EQ(redirections[1].sign + redirections[1].target.text, ">i");
}

TEST(Shell, CompoundCommandsHoldTheirLists) {
  for (const auto& [text, compound, inner] : std::vector<std::tuple<std::string, std::string, std::size_t>>{
           {"for h in a b; do ssh $h true; echo $h; done", "for", 2},
           {"for ((i=0; i<3; i++)); do echo; done", "for", 1},
           {"while ! (for h in $(cat f); do ssh $h || exit 1; done); do sleep 1; done", "while", 2},
           {"until a; do b\ndone", "until", 2},
           {"if a; then b; elif c; then d; else e; fi", "if", 5},
           {"case $x in a|b) c;; *) d; esac", "case", 2},
           {"{ a; b; }", "{", 2},
           {"(a; b)", "(", 2},
           {"f() { a; }", "f()", 1},
           {"function f { a; }", "f()", 1},
           {"((n++))", "((", 0}}) {
    const auto script = read_shell(text + " > /dev/null\nlast");
    ASSERT_TRUE(script) << text << ": " << script.error().message;
    ASSERT_EQ(script->size(), 2U) << text;
    EXPECT_EQ((*script)[0].commands[0].compound, compound);
    EXPECT_EQ((*script)[0].commands[0].inner.size(), inner) << text;
    EXPECT_EQ((*script)[1].commands[0].words[0].text, "last") << text;
  }
}

TEST(Shell, HereDocumentsAreNoCommands) {
  const auto script = read_shell("cat <<EOF > in; cat <<-'END'\nmpirun a\nEOF\nrm b\n\tEND\nlast\n");
  ASSERT_TRUE(script) << script.error().message;
  ASSERT_EQ(script->size(), 3U);
  EXPECT_EQ((*script)[2].commands[0].words[0].text, "last");
}

TEST(Shell, ExpansionsArePieces) {
  using Kind = Piece::Kind;
  const auto script = read_shell("x $A ${B} \"${C:-d}\" $(e f) $((1+2)) `g` *.h ~/i {j,k} $'l' a$ <(m) N=(o p)");
  ASSERT_TRUE(script) << script.error().message;
  std::vector<Kind> kinds;
  for (const Word& word : (*script)[0].commands[0].words | std::views::drop(1))
    for (const Piece& piece : word.pieces)
      if (piece.kind != Kind::kText) kinds.push_back(piece.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::kVariable, Kind::kVariable, Kind::kParameter, Kind::kCommand, Kind::kArithmetic,
                                 Kind::kCommand, Kind::kPattern, Kind::kPattern, Kind::kPattern, Kind::kParameter,
                                 Kind::kCommand, Kind::kParameter));
}

TEST(Shell, WhatItCantReadIsNamed) {
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{{"a\nb 'c", "has a ' that nothing closes (line 2)"},
                                                        {"a \"b", "has a \" that nothing closes"},
                                                        {"a `b", "has a ` that nothing closes"},
                                                        {"a $(b", "has a ( that nothing closes"},
                                                        {"done", "has \"done\""},
                                                        {"a )", "has \")\""},
                                                        {"a | | b", "has \"|\""},
                                                        {"a > ", "ends too early"},
                                                        {"for a in b; do c", "ends without \"done\""},
                                                        {"if a; then b", "ends without \"fi\""},
                                                        {"case a in b", "ends without \"esac\""}}) {
    const auto script = read_shell(text);
    ASSERT_FALSE(script) << text;
    EXPECT_THAT(script.error().message, HasSubstr(message)) << text;
  }
}

// However deep, cut short or mixed up: an error or a tree.
TEST(Shell, AnyTextIsReadOrRefused) {
  for (const char* opening :
       {"(", "{ ", "if ", "while ", "$(", "\"$(", "f() ", "case a in b) ", "<<E ", "[[ ", "((", "a=(", "{{", "\n;"}) {
    std::string deep;
    for (int i = 0; i < 20'000; ++i) deep += opening;
    EXPECT_NO_THROW({ [[maybe_unused]] const auto script = read_shell(deep); }) << opening;
  }
  const std::string whole =
      "f() { a \"$(b 'c' \\\" )\" ${d:-$e} $((f)); }; for g in h; do case i in j) k;; esac; done <<L\nm\nL\n[[ n && o "
      "]] &> p";
  for (std::size_t begin = 0; begin < whole.size(); ++begin)
    for (std::size_t end = begin; end < whole.size(); ++end)
      EXPECT_NO_THROW({ [[maybe_unused]] const auto script = read_shell(whole.substr(begin, end - begin)); });
}

TEST(Quoted, IsReadAsItself) {
  for (const std::string text : {"a", "", "a b", "it's", "$A", "a\nb", "*", "a=b", "#c", "~"}) {
    const auto script = read_shell("x " + quoted(text));
    ASSERT_TRUE(script) << text;
    ASSERT_EQ((*script)[0].commands[0].words.size(), 2U) << text;
    EXPECT_EQ((*script)[0].commands[0].words[1].text, text);
    EXPECT_FALSE((*script)[0].commands[0].words[1].expanded) << text;
  }
}

}  // namespace
}  // namespace bsp::convert
