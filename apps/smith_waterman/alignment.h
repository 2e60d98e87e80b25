// The traceback from the best cell to where its score began, and its display.
#pragma once

#include <string>
#include <string_view>

#include "apps/smith_waterman/strip.h"

namespace sw {

// One character for each column of the alignment, from begin to end:
//   '|' a letter of a against one of b     '^' a letter of a against a gap     '<' a gap against a letter of b
// Of paths with equal scores: the diagonal first, then the shortest gap in b, then the shortest in a.
std::string trace_back(const Strip& strip, std::string_view a, std::string_view b, const Scoring& scoring,
                       const Best& best);

struct Alignment {
  Best end;
  std::string path;
  std::size_t row = 0, column = 0;  // of its first letters in a and b, from 0

  Alignment() = default;
  Alignment(const Best& best, std::string way);
};

// Its score, computed from the letters alone; must equal the matrix's.
std::int64_t score_of(const Alignment& alignment, std::string_view a, std::string_view b, const Scoring& scoring);

// "812: a[13..960] with b[120..901], 921 columns, 80.3 % equal, 24 gaps"
std::string in_words(const Alignment& alignment, std::string_view a, std::string_view b);
// Three lines for each `width` columns, preceded by the positions in a and b; at most `blocks` of them.
std::string picture(const Alignment& alignment, std::string_view a, std::string_view b, std::size_t blocks,
                    std::size_t width = 60);

}  // namespace sw
