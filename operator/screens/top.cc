#include "operator/screens/top.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <map>

#include "base/core/counted.h"
#include "crds/stored_status.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

constexpr std::size_t kSets = 5, kConditionsBelow = 2, kMovesBelow = 3;  // lines of each part, if ranks need the others
constexpr std::size_t kName = 24;                                        // characters of a Set's name

std::string bar(double share, std::size_t width) {
  const double full = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  std::string out;
  for (std::size_t i = 0; i < width; ++i) out += static_cast<double>(i) + 0.5 < full ? "█" : "░";
  return out;
}

std::string padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, width_of(text)), ' ');
}

class Frame {
 public:
  Frame(const Shown& shown, Time now, Size size) : job_(shown.job), shown_(shown), now_(now), size_(size) {
    for (const auto& place : job_.status.ranks) {
      longest_ = std::max(longest_, place.compute_seconds);
      names_ = std::max(names_, width_of(cut(printable(place.set), kName)));
      auto& slowest = slowest_[place.set];
      slowest = std::max(slowest, place.compute_seconds);
    }
    for (const auto& set : job_.status.ranks_per_set)
      names_ = std::max(names_, width_of(cut(printable(set.set), kName)));
    bar_ = std::clamp<std::size_t>(size_.columns > names_ + 40 ? size_.columns - names_ - 40 : 0, 8, 40);
  }

  std::vector<std::string> draw() {
    const auto& s = job_.status;
    add(headline(job_, now_));
    add(result_line(s) + (s.alpha > 0 ? std::format(", α {}, D {:.3g}", s.alpha, s.d) : ""));
    if (s.phase != crds::JobPhase::kRunning && !(s.message.empty() && s.reason.empty()))
      add(s.message.empty() ? s.reason : s.message);
    sets();
    const std::vector<std::string> below = tail();
    const std::size_t used = lines_.size() + below.size();
    ranks(size_.lines > used + 1 ? size_.lines - used : 1);
    for (const std::string& line : below) add(line);
    if (lines_.size() > size_.lines) lines_.resize(size_.lines);
    return std::move(lines_);
  }

 private:
  void add(const std::string& line) { lines_.push_back(cut(printable(line), size_.columns)); }

  [[nodiscard]] std::string seconds_bar(double seconds) const {
    if (seconds <= 0 || longest_ <= 0) return padded("", bar_) + " –";
    return std::format("{} {}", bar(seconds / longest_, bar_), crds::duration_text(seconds));
  }
  [[nodiscard]] std::string name(const std::string& set) const { return padded(cut(printable(set), kName), names_); }

  void sets() {
    const auto& all = job_.status.ranks_per_set;
    const std::size_t shown = all.size() > kSets ? kSets - 1 : all.size();
    for (std::size_t i = 0; i < shown; ++i) {
      const auto found = slowest_.find(all[i].set);
      add(std::format("{} {:>11} {}", name(all[i].set), std::format("{}/{}", all[i].ranks, all[i].slots),
                      seconds_bar(found == slowest_.end() ? 0 : found->second)));
    }
    if (shown < all.size()) add("and " + counted(all.size() - shown, "more Set"));
  }

  // At most so many lines, one of them empty.
  void ranks(std::size_t most) {
    std::vector<const crds::RankPlace*> order;
    for (const auto& place : job_.status.ranks) order.push_back(&place);
    if (order.empty() || most < 2) return;
    add("");
    std::size_t shown = most - 1;
    if (order.size() > shown) {
      std::ranges::stable_sort(order, std::greater{}, &crds::RankPlace::compute_seconds);
      shown = most - 2;
    } else {
      shown = order.size();
    }
    for (std::size_t i = 0; i < shown; ++i) {
      const crds::RankPlace& place = *order[i];
      add(std::format("{} {:>11} {}{}", name(place.set), std::format("rank {}", place.rank.value),
                      seconds_bar(place.compute_seconds),
                      place.blocked_reason.empty() ? "" : "  " + place.blocked_reason));
    }
    if (shown < order.size())
      add(std::format("and {}{}", counted(order.size() - shown, "more rank"),
                      shown == 0 ? "" : "; these are the slowest"));
  }

  [[nodiscard]] std::vector<std::string> tail() const {
    std::vector<std::string> lines;
    const auto conditions = condition_lines(job_.status.conditions);
    const auto moves = newest_first(shown_.migrations);
    if (!conditions.empty() || !moves.empty()) lines.emplace_back();
    for (std::size_t i = 0; i < std::min(conditions.size(), kConditionsBelow); ++i) lines.push_back(conditions[i]);
    if (conditions.size() > kConditionsBelow)
      lines.push_back(std::format("and {} more conditions", conditions.size() - kConditionsBelow));
    for (std::size_t i = 0; i < std::min(moves.size(), kMovesBelow); ++i) lines.push_back(move_line(*moves[i], now_));
    return lines;
  }

  const crds::BspJob& job_;
  const Shown& shown_;
  Time now_;
  Size size_;
  double longest_ = 0;                     // s
  std::map<std::string, double> slowest_;  // s, by Set
  std::size_t names_ = 3, bar_ = 8;        // columns
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> top(const Shown& shown, Time now, Size size) { return Frame(shown, now, size).draw(); }

}  // namespace bsp::screens
