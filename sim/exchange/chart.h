// A picture of lines over a logarithmic abscissa, several panels side by side, as SVG text.
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

// The same name has the same colour in all panels.
std::string chart(const std::vector<Panel>& panels);

}  // namespace bsp::sim::exchange
