#include "sim/reproduce/pictures.h"

#include <algorithm>
#include <cmath>
#include <format>

namespace bsp::sim {
namespace {

constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#7d5ba6", "#b8860b", "#4a4a4a"};
constexpr double kLeft = 60, kRight = 150, kPanelHeight = 230, kTop = 46, kBetween = 34, kBottom = 84, kStep = 40;

struct Series {
  std::string name;
  std::vector<std::optional<double>> published, ours;  // by row
};
struct Panel {
  std::string title;
  std::vector<Series> series;
};

const Cell* alone_of(const Table& table, std::size_t row) {
  const auto found =
      std::ranges::find_if(table.cells, [&](const Cell& c) { return c.row == row && c.figure == Figure::kAlone; });
  return found == table.cells.end() ? nullptr : &*found;
}

// One series for each column of that figure, relative to scenario i if there is one.
Panel panel_of(const Table& table, const Results& results, Figure figure, std::string title) {
  Panel panel{.title = std::move(title), .series = {}};
  for (const std::string& column : table.value_columns) {
    Series series{
        .name = column, .published = std::vector<std::optional<double>>(table.rows.size()), .ours = series.published};
    bool any = false;
    for (const Cell& cell : table.cells) {
      if (cell.column != column || cell.figure != figure) continue;
      any = true;
      const Cell* alone = in_percent(figure) ? nullptr : alone_of(table, cell.row);
      const double ours = cell.ours(results.at(cell.run));
      series.ours[cell.row] = alone == nullptr ? ours : 100 * (ours / alone->ours(results.at(alone->run)) - 1);
      if (cell.published && alone == nullptr) series.published[cell.row] = cell.published;
      if (cell.published && alone != nullptr && alone->published)
        series.published[cell.row] = 100 * (*cell.published / *alone->published - 1);
    }
    if (any) panel.series.push_back(std::move(series));
  }
  return panel;
}

std::vector<Panel> panels_of(const Table& table, const Results& results) {
  const bool relative = std::ranges::any_of(table.cells, [](const Cell& c) { return c.figure == Figure::kAlone; });
  std::vector<Panel> panels;
  const auto add = [&](Figure figure, std::string title) {
    Panel panel = panel_of(table, results, figure, std::move(title));
    if (!panel.series.empty()) panels.push_back(std::move(panel));
  };
  const std::string unit = relative ? "% of scenario i" : "seconds";
  if (!relative) add(Figure::kAlone, "scenario i, seconds");
  add(Figure::kDeciding, "scenario ii, " + unit);
  add(Figure::kMigrating, "scenario iii, " + unit);
  add(Figure::kRestAlone, "scenario i, seconds besides computation");
  add(Figure::kRestMigrating, "scenario iii, seconds besides computation");
  add(Figure::kOverhead, "overhead, %");
  add(Figure::kGain, "gain, %");
  return panels;
}

// 1, 2 or 5 times a power of ten, so that about five steps fit.
double tick_step(double range) {
  const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

class Drawing {
 public:
  Drawing(const Table& table, std::vector<Panel> panels)
      : table_(table),
        panels_(std::move(panels)),
        plot_width_(kStep * static_cast<double>(std::max<std::size_t>(table.rows.size(), 6))) {}

  std::string svg() {
    const double height = kTop + static_cast<double>(panels_.size()) * (kPanelHeight + kBetween) + kBottom,
                 width = kLeft + plot_width_ + kRight;
    out_ = std::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    text(kLeft, 18, table_.title, "start", "14");
    text(kLeft, 34, "hollow, dashed: published     full, solid: ours", "start");
    double top = kTop;
    for (const Panel& panel : panels_) {
      draw(panel, top + 14);
      top += kPanelHeight + kBetween;
    }
    for (std::size_t row = 0; row < table_.rows.size(); ++row)
      out_ += std::format("<text transform=\"translate({:g},{:g}) rotate(-50)\" text-anchor=\"end\">{}</text>\n",
                          x(row) + 4, top + 2, escaped(table_.row_name(row)));
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] static double x(std::size_t row) { return kLeft + kStep * (static_cast<double>(row) + 0.5); }
  [[nodiscard]] double y(double value) const {
    return bottom_ - (value - least_) / (most_ - least_) * (kPanelHeight - 20);
  }

  void text(double at_x, double at_y, std::string_view words, std::string_view anchor, std::string_view size = "11") {
    out_ += std::format("<text x=\"{:g}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", at_x, at_y,
                        anchor, size, escaped(words));
  }

  void scale_to(const Panel& panel) {
    least_ = 0, most_ = 0;
    for (const Series& series : panel.series)
      for (const auto* values : {&series.published, &series.ours})
        for (const std::optional<double>& value : *values)
          if (value) least_ = std::min(least_, *value), most_ = std::max(most_, *value);
    if (most_ - least_ <= 0) most_ = least_ + 1;
    step_ = tick_step(most_ - least_);
    least_ = std::floor(least_ / step_) * step_;
    most_ = std::ceil(most_ / step_) * step_;
  }

  void draw(const Panel& panel, double top) {
    scale_to(panel);
    bottom_ = top + kPanelHeight - 10;
    text(kLeft, top + 2, panel.title, "start", "12");
    for (double tick = least_; tick <= most_ + step_ / 2; tick += step_) {
      const double value = std::abs(tick) < step_ / 1e6 ? 0 : tick;
      out_ += std::format("<line x1=\"{0:g}\" x2=\"{1:g}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n", kLeft,
                          kLeft + plot_width_, y(value), value == 0 ? "#888" : "#ddd");
      text(kLeft - 6, y(value) + 4, std::format("{:.6g}", value), "end");
    }
    for (std::size_t s = 0; s < panel.series.size(); ++s) {
      const char* colour = kColours[s % std::size(kColours)];
      draw_line(panel.series[s].published, colour, true);
      draw_line(panel.series[s].ours, colour, false);
      const double at = top + 24 + 16 * static_cast<double>(s);
      out_ += std::format("<rect x=\"{:g}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
                          kLeft + plot_width_ + 12, at - 9, colour);
      text(kLeft + plot_width_ + 27, at, panel.series[s].name, "start");
    }
  }

  void draw_line(const std::vector<std::optional<double>>& values, const char* colour, bool published) {
    std::string points;
    for (std::size_t row = 0; row < values.size(); ++row) {
      if (!values[row]) continue;
      points += std::format("{:g},{:.1f} ", x(row), y(*values[row]));
      out_ += std::format("<circle cx=\"{:g}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", x(row),
                          y(*values[row]), published ? 4 : 2.5, published ? "none" : colour, colour);
    }
    out_ += std::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1\"{}/>\n", points, colour,
                        published ? " stroke-dasharray=\"4 3\"" : "");
  }

  const Table& table_;
  std::vector<Panel> panels_;
  double plot_width_;
  std::string out_;
  double bottom_ = 0, least_ = 0, most_ = 1, step_ = 1;  // of the panel that is being drawn
};

}  // namespace

std::string picture_of(const Table& table, const Results& results) {
  return Drawing(table, panels_of(table, results)).svg();
}

}  // namespace bsp::sim
