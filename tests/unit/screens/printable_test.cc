#include "operator/screens/printable.h"

#include <gtest/gtest.h>

#include "operator/screens/svg.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

TEST(Printable, KeepsTextAndReplacesControls) {
  EXPECT_EQ(printable("rank 3 slow→fast: 2 µs"), "rank 3 slow→fast: 2 µs");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("\033[2Jx\007\b\x7f"), "?[2Jx???");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "?2J")
      << "CSI in one character";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a?b")
      << "right-to-left override";
  EXPECT_EQ(printable("\xff\xc3"), "??") << "no UTF-8";
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"), "?????????") << "overlong, surrogate, beyond Unicode";
  EXPECT_EQ(printable("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
  EXPECT_FALSE(has_control(printable(kHostile)));
  EXPECT_EQ(printable_lines("a\033\nb\n"), "a?\nb\n");
}

// Each byte sequence of up to three bytes of interest leaves valid text without controls, and a second pass changes nothing.
TEST(Printable, IsIdempotent) {
  const std::vector<unsigned char> bytes = {0x00, 0x1b, 0x41, 0x7f, 0x80, 0x9b, 0xa0, 0xbf,
                                            0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xff};
  for (const auto a : bytes)
    for (const auto b : bytes)
      for (const auto c : bytes) {
        const std::string text{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
        const std::string once = printable(text);
        EXPECT_EQ(printable(once), once);
        EXPECT_FALSE(has_control(once));
      }
}

TEST(Printable, CutsAndWrapsByCharacters) {
  EXPECT_EQ(cut("→→→→", 3), "→→…");
  EXPECT_EQ(cut("→→→", 3), "→→→");
  EXPECT_EQ(wrapped("  one two three", 9), (std::vector<std::string>{"  one two", "    three"}));
  EXPECT_EQ(wrapped("one two three four", 9, 2), (std::vector<std::string>{"one two", "  three …"}));
  EXPECT_EQ(wrapped("", 9), (std::vector<std::string>{""}));
  for (const std::size_t columns : {1, 2, 5, 20})
    for (const std::size_t most : {1, 2, 3, 5}) {
      const auto lines =
          wrapped("averylongwordindeedatthebeginning and →→→→→→→→→→→→→→→→→→→→→→→ at the end", columns, most);
      EXPECT_LE(lines.size(), most);
      for (const std::string& line : lines) EXPECT_LE(width_of(line), columns) << line;
    }
}

TEST(Svg, EscapesWhatXmlCantHold) {
  EXPECT_EQ(escaped("<a href=\"x\">&\033\xff"), "&lt;a href=&quot;x&quot;&gt;&amp;??");
}

}  // namespace
}  // namespace bsp::screens
