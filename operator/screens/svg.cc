#include "operator/screens/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>

#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

// Okabe and Ito's palette, without black and yellow.
constexpr std::array kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"};

std::string spaced(std::string_view attributes) { return attributes.empty() ? "" : " " + std::string(attributes); }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  const std::size_t end = (most - 1) / 2;
  return name.substr(0, most - 1 - end) + "…" + name.substr(name.size() - end);
}

double round_step(double end, int most) {
  const double raw = std::max(end, 1e-9) / most, scale = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * scale) return factor * scale;
  return 10 * scale;
}

const char* colour_of_set(std::size_t set) { return kColours[set % kColours.size()]; }

Svg::Svg(double width, double height)
    : out_(std::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
          "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
          "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
          "orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#222\"/></marker></defs>\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
          width, height)) {}

void Svg::text(double x, double y, std::string_view what, std::string_view attributes) {
  out_ += std::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, spaced(attributes), escaped(what));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  out_ +=
      std::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, attributes);
}

void Svg::box(double left, double top, double width, double height, std::string_view attributes) {
  out_ += std::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"{}/>\n", left, top, width,
                      height, spaced(attributes));
}

void Svg::share_bar(double left, double top, double width, double height, double share) {
  box(left, top, width, height, "opacity=\"0.3\"");
  box(left, top + height * (1 - share), width, height * share, "");
}

void Svg::group(std::string_view title, std::string_view attributes) {
  out_ += std::format("<g{}><title>{}</title>\n", spaced(attributes), escaped(title));
}

void Svg::time_axis(double left, double right, double y, double end) {
  line(left, y, right, y, "stroke=\"#222\"");
  const double step = round_step(end, 12);
  for (int k = 0; k * step <= end * 1.0001; ++k) {
    const double x = left + (right - left) * k * step / end;
    line(x, y, x, y + 5, "stroke=\"#222\"");
    text(x, y + 17, std::format("{:g} s", k * step), "text-anchor=\"middle\"");
  }
}

}  // namespace bsp::screens
