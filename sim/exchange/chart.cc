#include "sim/exchange/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>

namespace bsp::sim::exchange {
namespace {

constexpr double kWidth = 320;  // of a panel
constexpr double kHeight = 260;
constexpr double kLeft = 62;  // inside it, up to the axis
constexpr double kTop = 34;
constexpr double kPlotWidth = 240;
constexpr double kPlotHeight = 170;
constexpr int kPerRow = 2;

constexpr std::array<const char*, 8> kColours{"#1b6ca8", "#d1495b", "#2e933c", "#edae49",
                                              "#6a4c93", "#00798c", "#8d6a9f", "#444444"};

struct Axis {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool log = true;

  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void round() {
    if (low > high) low = high = 1;
    if (log) {
      low = std::pow(10, std::floor(std::log10(low)));
      high = std::pow(10, std::ceil(std::log10(high)));
      if (high <= low) high = low * 10;
    } else {
      low = std::min(low, 0.0);
      if (high <= low) high = low + 1;
    }
  }
  [[nodiscard]] double part(double value) const {
    return log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string tick_text(double value) {
  return value != 0 && (value >= 1e5 || value < 1e-3) ? std::format("{:.0e}", value) : std::format("{:g}", value);
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
  return std::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

std::string panel_svg(const Panel& panel, const std::vector<std::string>& names, double left, double top) {
  Axis x;
  Axis y;
  y.log = panel.log_y;
  for (const Line& line : panel.lines)
    for (const auto& [px, py] : line.points) {
      x.take(px);
      if (!y.log || py > 0) y.take(py);
    }
  if (x.high <= x.low) x.high = x.low * 2;
  y.round();
  const auto at_x = [&](double v) { return left + kLeft + kPlotWidth * x.part(v); };
  const auto at_y = [&](double v) { return top + kTop + kPlotHeight * (1 - y.part(v)); };

  std::string svg = text_at(left + kLeft, top + 18, "start", panel.title, " font-weight=\"bold\"");
  svg += std::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n",
                     left + kLeft, top + kTop, kPlotWidth, kPlotHeight);
  for (double v = y.low; v <= y.high * 1.0001; v = y.log ? v * 10 : v + (y.high - y.low) / 4) {
    svg += std::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                       left + kLeft, left + kLeft + kPlotWidth, at_y(v), at_y(v));
    svg += text_at(left + kLeft - 5, at_y(v) + 4, "end", tick_text(v));
  }
  std::vector<double> ticks;
  for (const Line& line : panel.lines)
    for (const auto& point : line.points) ticks.push_back(point.first);
  std::ranges::sort(ticks);
  const auto [from, to] = std::ranges::unique(ticks);
  ticks.erase(from, to);
  for (const double v : ticks) svg += text_at(at_x(v), top + kTop + kPlotHeight + 14, "middle", tick_text(v));
  svg += text_at(left + kLeft + kPlotWidth / 2, top + kTop + kPlotHeight + 30, "middle", panel.x + "; " + panel.y);
  for (const Line& line : panel.lines) {
    const auto index = static_cast<std::size_t>(std::ranges::find(names, line.name) - names.begin());
    const char* colour = kColours[index % kColours.size()];
    std::string points;
    for (const auto& [px, py] : line.points) {
      if (y.log && py <= 0) continue;
      points += std::format("{:.1f},{:.1f} ", at_x(px), at_y(py));
      svg += std::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"/>\n", at_x(px), at_y(py), colour);
    }
    svg += std::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", points, colour);
  }
  return svg;
}

}  // namespace

std::string chart(const std::vector<Panel>& panels) {
  std::vector<std::string> names;
  for (const Panel& panel : panels)
    for (const Line& line : panel.lines)
      if (std::ranges::find(names, line.name) == names.end()) names.push_back(line.name);
  const auto rows = static_cast<int>((panels.size() + kPerRow - 1) / kPerRow);
  const double legend = 18.0 * static_cast<double>((names.size() + 2) / 3) + 10;
  const double width = kPerRow * kWidth + 20;
  std::string svg = std::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, rows * kHeight + legend);
  for (std::size_t i = 0; i < panels.size(); ++i)
    svg += panel_svg(panels[i], names, kWidth * static_cast<double>(i % kPerRow),
                     kHeight * static_cast<double>(i / kPerRow));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = 20 + static_cast<double>(i % 3) * (width - 20) / 3;
    const double y = rows * kHeight + 14 + 18.0 * static_cast<double>(i / 3);
    svg += std::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"2.5\"/>\n", x,
                       x + 18, y - 4, kColours[i % kColours.size()]);
    svg += text_at(x + 24, y, "start", names[i]);
  }
  return svg + "</svg>\n";
}

}  // namespace bsp::sim::exchange
