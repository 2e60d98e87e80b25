// Line charts over a logarithmic x axis, with several panels side by side, as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bsp::sim::exchange {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascending; x and, where logarithmic, y > 0
};

struct Panel {
  std::string title;
  std::string x;
  std::string y;
  bool log_y = true;
  std::vector<Line> lines;
};

// A name has the same colour in all panels.
std::string chart(const std::vector<Panel>& panels);

}  // namespace bsp::sim::exchange
