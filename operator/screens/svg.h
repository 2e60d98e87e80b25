// A picture as SVG, for the timelines of real and of simulated runs. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bsp::screens {

// Text for XML; what XML can't hold becomes "?".
std::string escaped(std::string_view text);
// Cuts the middle out of a long name, because names of pools and jobs differ at both ends.
std::string shortened(const std::string& name, std::size_t most);
// A round step that divides 0 to `end` into at most about `most` steps.
double round_step(double end, int most);

// The colour of a Set by its number: colour-blind readers can distinguish the first six.
const char* colour_of_set(std::size_t set);

class Svg {
 public:
  Svg(double width, double height);

  void text(double x, double y, std::string_view what, std::string_view attributes = "");
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  void box(double left, double top, double width, double height, std::string_view attributes);
  // A pale bar whose lower part is strong: `share` of it, 0 to 1.
  void share_bar(double left, double top, double width, double height, double share);
  // What follows, up to end_group(), belongs together and shows `title` under the pointer.
  void group(std::string_view title, std::string_view attributes = "");
  void end_group() { out_ += "</g>\n"; }
  // Seconds from 0 to `end` along the bottom of a plot.
  void time_axis(double left, double right, double y, double end);

  std::string take() && { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace bsp::screens
