// The matrix and the traceback, compared with independent methods: Gotoh's three matrices, and all possible
// alignments.
#include <gmock/gmock.h>

#include <map>

#include "apps/smith_waterman/alignment.h"
#include "apps/smith_waterman/options.h"
#include "apps/smith_waterman/sequence.h"
#include "apps/smith_waterman/strip.h"

namespace sw {
namespace {

using testing::HasSubstr;

Strip whole(const Pair& pair, const Scoring& scoring) {
  Strip strip(pair.a, pair.b, scoring, 0, pair.b.size());
  strip.compute(0, pair.a.size());
  return strip;
}

Alignment align(const Pair& pair, const Scoring& scoring) {
  const Strip strip = whole(pair, scoring);
  return {strip.best(), trace_back(strip, pair.a, pair.b, scoring, strip.best())};
}

// Gotoh 1982: affine gaps with three matrices, O(1) a cell.
std::vector<std::vector<int>> gotoh(const Pair& p, const Scoring& s) {
  const std::size_t m = p.a.size(), n = p.b.size();
  constexpr int kNever = -1000000;
  std::vector<std::vector<int>> h(m + 1, std::vector<int>(n + 1)), e(m + 1, std::vector<int>(n + 1, kNever)), f = e;
  for (std::size_t i = 1; i <= m; ++i)
    for (std::size_t j = 1; j <= n; ++j) {
      e[i][j] = std::max(h[i][j - 1] - s.gap_open, e[i][j - 1] - s.gap_extend);
      f[i][j] = std::max(h[i - 1][j] - s.gap_open, f[i - 1][j] - s.gap_extend);
      h[i][j] = std::max({0, h[i - 1][j - 1] + s.letters(p.a[i - 1], p.b[j - 1]), e[i][j], f[i][j]});
    }
  return h;
}

// The best score of all alignments of suffixes that begin at (i, j) and end anywhere; `in` says which gap is open and
// how long it is. Exhaustive.
int best_from(const Pair& p, const Scoring& s, std::size_t i, std::size_t j, char in = ' ', std::size_t length = 0) {
  int best = 0;
  const auto longer = [&](char kind) {
    const std::size_t k = in == kind ? length + 1 : 1;
    return std::pair(k, k == 1 ? -s.gap(1) : s.gap(k - 1) - s.gap(k));
  };
  if (i < p.a.size() && j < p.b.size())
    best = std::max(best, s.letters(p.a[i], p.b[j]) + best_from(p, s, i + 1, j + 1));
  if (i < p.a.size()) {
    const auto [k, cost] = longer('^');
    best = std::max(best, cost + best_from(p, s, i + 1, j, '^', k));
  }
  if (j < p.b.size()) {
    const auto [k, cost] = longer('<');
    best = std::max(best, cost + best_from(p, s, i, j + 1, '<', k));
  }
  return best;
}

std::vector<Scoring> scorings() {
  return {{},
          {.gap_open = 1, .gap_extend = 0},
          {.match = 5, .mismatch = -4, .gap_open = 10, .gap_extend = 1},
          {.match = 1, .mismatch = 0, .gap_open = 2, .gap_extend = 2}};
}

TEST(SmithWaterman, TextbookExample) {
  const Pair pair{"TGTTACGG", "GGTTGACTA"};
  const Alignment alignment = align(pair, {.match = 3, .mismatch = -3, .gap_open = 2, .gap_extend = 2});
  EXPECT_EQ(alignment.end.score, 13);
  EXPECT_EQ(picture(alignment, pair.a, pair.b, 9), "  a      2 GTT-AC\n           ||| ||\n  b      2 GTTGAC\n\n");
  EXPECT_EQ(in_words(alignment, pair.a, pair.b), "score 13: a[2..6] with b[2..7], 6 columns, 83.3 % equal, 1 gaps");
}

TEST(SmithWaterman, AffineGapsMatchGotoh) {
  for (const Scoring& scoring : scorings())
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Pair pair = generate(60 + 7 * seed, 95 - 9 * seed, seed);
      const Strip strip = whole(pair, scoring);
      const auto expected = gotoh(pair, scoring);
      for (std::size_t i = 0; i <= pair.a.size(); ++i)
        for (std::size_t j = 0; j <= pair.b.size(); ++j) ASSERT_EQ(strip.at(i, j), expected[i][j]) << i << " " << j;
    }
}

TEST(SmithWaterman, NoAlignmentScoresMore) {
  for (Scoring scoring : scorings())
    for (const bool logarithmic : {false, true}) {
      scoring.logarithmic = logarithmic;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        const Pair pair = generate(3 + seed % 4, 2 + seed % 5, seed);
        int best = 0;
        for (std::size_t i = 0; i < pair.a.size(); ++i)
          for (std::size_t j = 0; j < pair.b.size(); ++j) best = std::max(best, best_from(pair, scoring, i, j));
        EXPECT_EQ(align(pair, scoring).end.score, best) << pair.a << " " << pair.b;
      }
    }
}

TEST(SmithWaterman, TracebackHasTheMatrixScore) {
  for (Scoring scoring : scorings())
    for (const bool logarithmic : {false, true}) {
      scoring.logarithmic = logarithmic;
      const Pair pair = generate(150, 131, 5);
      const Alignment alignment = align(pair, scoring);
      EXPECT_EQ(score_of(alignment, pair.a, pair.b, scoring), alignment.end.score);
      EXPECT_GT(alignment.end.score, 20);
    }
}

TEST(SmithWaterman, LogarithmicGapIsLongerThanAnAffineOne) {
  const Pair pair{"ACGTACGTCC" + std::string(64, 'A') + "GGTCATTCAG", "ACGTACGTCCGGTCATTCAG"};
  Scoring scoring;
  EXPECT_EQ(align(pair, scoring).end.score, 20);
  scoring.logarithmic = true;
  EXPECT_EQ(align(pair, scoring).end.score, 40 - 5 - 2 * 6);
}

// Strips and blocks of any size yield the same matrix as one strip; strips without a column only forward their input.
TEST(SmithWaterman, StripsMakeOneMatrix) {
  for (const std::size_t strips : {1u, 2u, 3u, 7u, 40u})
    for (const std::size_t blocks : {1u, 2u, 5u, 60u}) {
      const Pair pair = generate(41, 29, 3);
      const Strip expected = whole(pair, {});
      std::vector<Strip> all;
      for (std::size_t i = 0; i < strips; ++i) {
        const std::size_t first = 29 * i / strips;
        all.emplace_back(pair.a, pair.b, Scoring{}, first, 29 * (i + 1) / strips - first);
      }
      Best best;
      for (std::size_t block = 0; block < blocks; ++block) {
        const std::size_t begin = 41 * block / blocks, end = 41 * (block + 1) / blocks;
        for (std::size_t i = 0; i < strips; ++i) {
          if (i > 0) all[i].unpack(begin, end, all[i - 1].pack(begin, end));
          all[i].compute(begin, end);
        }
      }
      for (std::size_t i = 0, j = 0; i < strips; ++i) {
        if (all[i].best().better_than(best)) best = all[i].best();
        for (std::size_t own = 0; own < all[i].count(); ++own, ++j)
          ASSERT_TRUE(std::ranges::equal(all[i].column(own), expected.column(j)))
              << strips << " " << blocks << " " << j;
      }
      EXPECT_EQ(std::tuple(best.score, best.row, best.column),
                std::tuple(expected.best().score, expected.best().row, expected.best().column));
    }
}

TEST(SmithWaterman, NothingInCommon) {
  const Pair pair{"AAAA", "CC"};
  const Alignment alignment = align(pair, {});
  EXPECT_EQ(alignment.path, "");
  EXPECT_EQ(score_of(alignment, pair.a, pair.b, {}), 0);
  EXPECT_THAT(in_words(alignment, pair.a, pair.b), HasSubstr("score 0"));
  EXPECT_EQ(picture(alignment, pair.a, pair.b, 2), "");
}

TEST(Sequences, AreGeneratedInTheirLengths) {
  for (const std::uint64_t rows : {1u, 2u, 9u, 500u})
    for (const std::uint64_t columns : {1u, 8u, 1000u}) {
      const Pair pair = generate(rows, columns, 1);
      EXPECT_EQ(pair.a.size(), rows);
      EXPECT_EQ(pair.b.size(), columns);
    }
  EXPECT_EQ(generate(50, 50, 1).b, generate(50, 50, 1).b);
  EXPECT_NE(generate(50, 50, 1).a, generate(50, 50, 2).a);
}

TEST(Sequences, AreReadFromFasta) {
  EXPECT_EQ(parse_fasta(">one\nACgt\r\nTT *\n>two\nGG\n"), "ACGTTT*");
  EXPECT_EQ(parse_fasta("AC"), "AC");
  EXPECT_THAT(parse_fasta(">x\nAC1\n").error(), HasSubstr("line 2"));
  EXPECT_THAT(parse_fasta(std::string("A\0C", 3)).error(), HasSubstr("byte 0"));
  EXPECT_THAT(parse_fasta(">only a header\n").error(), HasSubstr("no sequence"));
  EXPECT_THAT(parse_fasta("").error(), HasSubstr("no sequence"));
  EXPECT_THAT(parse_fasta(std::string(kLongest + 1, 'A')).error(), HasSubstr("longer than 30000"));
  EXPECT_THAT(read_fasta("/no/such/file").error(), HasSubstr("can't be opened"));
  EXPECT_THAT(read_fasta("/").error(), HasSubstr("directory"));
  EXPECT_THAT(read_fasta("/dev/zero").error(), HasSubstr("byte 0"));
}

TEST(SmithWaterman, RejectsContradictoryOptions) {
  Options options;
  options.gap = "convex";
  EXPECT_THAT(check(options), HasSubstr("affine or logarithmic"));
  options.gap = "logarithmic";
  EXPECT_EQ(check(options), "");
  EXPECT_TRUE(options.scoring.logarithmic);
  options.file_a = "x";
  EXPECT_THAT(check(options), HasSubstr("specify both files, or none"));
}

}  // namespace
}  // namespace sw
