// A screen that is drawn again and again: in place on a terminal, elsewhere one frame after the other without control
// codes.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/core/error.h"

namespace bsp::cli {

struct ScreenSize {  // of one frame
  std::size_t columns = 100;
  std::size_t lines = 24;
};

// Of standard output's terminal; the last line stays free for the cursor.
ScreenSize terminal_size();

struct Drawn {
  std::vector<std::string> lines;
  bool last = false;  // nothing will change any more
};

// Draws every two seconds until the last frame, or once; kDone then. An error of the first frame ends it, and kNotFound at
// any time; another is shown under the frame before it, because a server that doesn't answer now may do so again.
Result<int> show_live(const std::function<Result<Drawn>(ScreenSize)>& draw, bool once);

// Writes lines to stdout.
void print_lines(const std::vector<std::string>& lines);

}  // namespace bsp::cli
