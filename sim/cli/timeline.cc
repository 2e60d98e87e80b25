#include "sim/cli/timeline.h"

#include <algorithm>
#include <format>
#include <map>
#include <set>
#include <vector>

#include "operator/screens/svg.h"
#include "sim/cli/report.h"

namespace bsp::sim {
namespace {

using screens::colour_of_set;
using screens::shortened;

// Merges adjacent stretches with the same mapping, so that a long run's picture doesn't grow with the number of calls.
std::vector<Stretch> with_one_mapping(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> merged;
  for (const Stretch& next : stretches) {
    if (merged.empty() || merged.back().mapping != next.mapping) {
      merged.push_back(next);
      continue;
    }
    Stretch& before = merged.back();
    before.last = next.last;
    before.end = next.end;
    for (std::size_t i = 0; i < next.compute_seconds.size(); ++i) before.compute_seconds[i] += next.compute_seconds[i];
  }
  return merged;
}

class Picture {
 public:
  Picture(const Platform& platform, const Workload& workload, const Scenarios& scenarios)
      : platform_(platform), workload_(workload), s_(scenarios), run_(scenarios.migrating) {
    auto nodes = decision_platform(platform);
    check(nodes.has_value(), "a simulated platform is valid");
    nodes_ = std::move(*nodes);
    lay_out();
    svg_ = screens::Svg(kWidth, bottom_ + kFoot);
  }

  std::string draw() {
    heading();
    sets();
    const bool many = run_.stretches.size() * workload_.ranks() > kMostBars;
    for (const Stretch& stretch : many ? with_one_mapping(run_.stretches) : run_.stretches) bars(stretch);
    axis();
    calls();
    moves();
    ends();
    return std::move(svg_).take();
  }

 private:
  static constexpr double kWidth = 1200, kRight = 1170, kTop = 78, kFoot = 62, kGap = 10;
  static constexpr std::size_t kMostBars = 20'000, kLongestName = 40;

  void lay_out() {
    std::set<std::uint32_t> used;
    for (const Stretch& stretch : run_.stretches)
      for (const ProcessorId p : stretch.mapping) used.insert(p.value);
    for (const Moved& move : run_.moves) used.insert(move.to.value);
    row_height_ = std::clamp(760.0 / static_cast<double>(std::max<std::size_t>(used.size(), 1)), 5.0, 26.0);
    double y = kTop;
    std::uint32_t p = 0;
    for (const Set& set : platform_.sets) {
      const double top = y;
      std::size_t rows = 0;
      for (std::size_t n = 0; n < set.nodes.size(); ++n, ++p) {
        if (!used.contains(p)) continue;
        row_top_[p] = y;
        y += row_height_;
        ++rows;
      }
      blocks_.push_back({top, y, rows});
      if (rows > 0) y += kGap;
    }
    bottom_ = y;
    std::size_t longest = 16;  // label on the left
    for (const Set& set : platform_.sets) longest = std::max(longest, set.name.size() + 12);
    if (row_height_ >= 12)
      for (const auto& [at, top] : row_top_) longest = std::max(longest, nodes_.processors[at].name.size());
    left_ = 20 + 6.5 * static_cast<double>(std::min(longest, kLongestName + 12));
    end_ = std::max({s_.alone.makespan, s_.deciding.makespan, run_.makespan, 1e-9});
  }

  [[nodiscard]] double x(double seconds) const { return left_ + (kRight - left_) * seconds / end_; }
  [[nodiscard]] double middle(ProcessorId p) const { return row_top_.at(p.value) + row_height_ / 2; }
  [[nodiscard]] const char* colour_of(std::uint32_t rank) const {
    return colour_of_set(nodes_.processor(s_.alone.mapping[rank]).set.value);
  }

  void heading() {
    const auto percent = [&](double makespan) {
      return s_.alone.makespan > 0 ? (makespan / s_.alone.makespan - 1) * 100 : 0;
    };
    svg_.text(left_, 22, title(workload_), "font-size=\"15\" font-weight=\"bold\"");
    svg_.text(
        left_, 40,
        std::format("(i) alone {:.2f} s · (ii) deciding {:.2f} s ({:+.1f} %) · (iii) with moves, drawn here, {:.2f} s "
                    "({:+.1f} %)",
                    s_.alone.makespan, s_.deciding.makespan, percent(s_.deciding.makespan), run_.makespan,
                    percent(run_.makespan)));
  }

  void sets() {
    for (std::size_t j = 0; j < blocks_.size(); ++j) {
      const auto& [top, end, rows] = blocks_[j];
      if (rows == 0) continue;
      const Set& set = platform_.sets[j];
      svg_.box(left_, top, kRight - left_, end - top, "fill=\"#f4f4f4\"");
      svg_.box(left_ - 7, top, 5, end - top, std::format("fill=\"{}\"", colour_of_set(j)));
      const bool tall = row_height_ >= 12;  // the rows have labels, and the Set's name goes above them
      const std::string name = shortened(set.name, kLongestName) +
                               (rows < set.nodes.size() ? std::format(" ({} of {})", rows, set.nodes.size()) : "");
      if (!tall)
        svg_.text(left_ - 12, std::min((top + end) / 2 + 4, end + 4), name, "text-anchor=\"end\" font-weight=\"bold\"");
      else
        svg_.text(left_ - 12, top - 1, name, "text-anchor=\"end\" font-weight=\"bold\"");
    }
    if (row_height_ < 12) return;
    for (const auto& [p, top] : row_top_)
      svg_.text(left_ - 12, top + row_height_ / 2 + 6, shortened(nodes_.processors[p].name, kLongestName + 6),
                "text-anchor=\"end\" fill=\"#444\" font-size=\"10\"");
  }

  void bars(const Stretch& stretch) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> on;  // ranks by processor
    for (std::uint32_t i = 0; i < stretch.mapping.size(); ++i) on[stretch.mapping[i].value].push_back(i);
    const double left = x(stretch.begin), width = std::max(x(stretch.end) - left, 0.2),
                 seconds = stretch.end - stretch.begin;
    for (const auto& [p, ranks] : on) {
      const double height = (row_height_ - 1) / static_cast<double>(ranks.size());
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        const std::uint32_t i = ranks[k];
        const double top = row_top_.at(p) + static_cast<double>(k) * height;
        const double busy = seconds > 0 ? std::min(stretch.compute_seconds[i] / seconds, 1.0) : 0;
        svg_.group(std::format("rank {} on {}, supersteps {} to {}: computed {:.1f} % of {:.3f} s", i,
                               nodes_.processors[p].name, stretch.first.value, stretch.last.value, busy * 100, seconds),
                   std::format("fill=\"{}\"", colour_of(i)));
        svg_.share_bar(left, top, width, height, busy);
        svg_.end_group();
        const auto last = labelled_.find(i);  // label a rank once per processor
        if (height < 11 || width < 18 || (last != labelled_.end() && last->second == p)) continue;
        labelled_[i] = p;
        svg_.text(left + 4, top + height / 2 + 4, std::format("{}", i),
                  "font-size=\"9\" stroke=\"#fff\" stroke-width=\"2.5\" paint-order=\"stroke\"");
      }
    }
  }
  void axis() {
    svg_.time_axis(left_, kRight, bottom_, end_);
    svg_.text(
        left_, bottom_ + 38,
        "Bar: a rank on its processor, in the colour of the Set where it started; the strong part is the share of the "
        "time in which it "
        "computed, the rest it waited and sent.");
    svg_.text(
        left_, bottom_ + 52,
        "Tick above: a rescheduling call; with a number: one that moved ranks, after that superstep. Arrow: a move.");
  }

  void calls() {
    std::map<std::uint64_t, std::size_t> moved;  // by superstep
    for (const Moved& move : run_.moves) ++moved[move.superstep.value];
    double free_from = 0, tick_from = 0;                 // keep numbers and ticks from overlapping
    for (std::size_t k = 0; k < run_.calls_made; ++k) {  // one after every stretch but the last
      const Stretch& stretch = run_.stretches[k];
      const auto some = moved.find(stretch.last.value);
      const double at = x(stretch.end);
      if (some == moved.end() && at < tick_from) continue;
      tick_from = at + 0.5;
      svg_.line(at, kTop - (some == moved.end() ? 6 : 12), at, kTop - 1,
                some == moved.end() ? "stroke=\"#888\"" : "stroke=\"#222\" stroke-width=\"1.5\"");
      if (some == moved.end() || at < free_from) continue;
      const std::string label = std::format("{}", stretch.last.value);
      svg_.text(at, kTop - 15, label, "text-anchor=\"middle\" font-size=\"10\"");
      free_from = at + 7.0 * static_cast<double>(label.size()) + 4;
    }
  }

  void moves() {
    std::map<std::uint64_t, double> begin, end;  // by superstep: when the move of a call began and ended
    for (std::size_t k = 0; k < run_.stretches.size(); ++k) {
      begin[run_.stretches[k].last.value] = run_.stretches[k].end;
      if (k + 1 < run_.stretches.size()) end[run_.stretches[k].last.value] = run_.stretches[k + 1].begin;
    }
    const char* strength = run_.moves.size() > 60 ? "stroke-width=\"0.6\" opacity=\"0.5\"" : "stroke-width=\"1.2\"";
    for (const Moved& move : run_.moves) {
      const double from = x(begin[move.superstep.value]), to = std::max(x(end[move.superstep.value]), from + 5);
      svg_.group(std::format("rank {} moves from {} to {} after superstep {}", move.rank.value,
                             nodes_.processor(move.from).name, nodes_.processor(move.to).name, move.superstep.value));
      svg_.line(from, middle(move.from), to, middle(move.to),
                std::format("stroke=\"#222\" {} marker-end=\"url(#tip)\"", strength));
      svg_.end_group();
    }
  }

  void ends() {
    for (const auto& [name, outcome] : {std::pair{"i", &s_.alone}, std::pair{"ii", &s_.deciding}}) {
      const double at = x(outcome->makespan);
      svg_.line(at, kTop, at, bottom_, "stroke=\"#a00\" stroke-dasharray=\"4 3\"");
      svg_.text(at - 5, bottom_ - (outcome == &s_.alone ? 4 : 15), std::format("({}) ends", name),
                "text-anchor=\"end\" fill=\"#a00\" font-size=\"10\"");
    }
  }

  struct Block {
    double top, end;
    std::size_t rows;
  };

  const Platform& platform_;
  const Workload& workload_;
  const Scenarios& s_;
  const Outcome& run_;  // iii
  decide::Platform nodes_;
  std::map<std::uint32_t, double> row_top_;          // by processor
  std::vector<Block> blocks_;                        // by Set
  std::map<std::uint32_t, std::uint32_t> labelled_;  // by rank: the processor where it is labelled
  double row_height_ = 0, left_ = 0, bottom_ = 0, end_ = 1;
  screens::Svg svg_{kWidth, 0};  // until it is laid out
};

}  // namespace

std::string timeline_svg(const Platform& platform, const Workload& workload, const Scenarios& scenarios) {
  return Picture(platform, workload, scenarios).draw();
}

}  // namespace bsp::sim
