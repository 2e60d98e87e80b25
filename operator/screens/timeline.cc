#include "operator/screens/timeline.h"

#include <algorithm>
#include <format>
#include <map>
#include <optional>

#include "base/core/read_file.h"
#include "crds/stored_status.h"
#include "operator/record/line.h"
#include "operator/screens/svg.h"

namespace bsp::screens {
namespace {

using crds::MigrationPhase;

constexpr double kWidth = 1200, kRight = 1170, kTop = 92, kPlot = 54, kPlotGap = 26, kFoot = 74;
constexpr std::size_t kMostBars = 20'000, kLongestName = 40;
constexpr const char* kUnknown = "#999";  // the place of a rank in an attempt that left no trace

// The move of a rank, as far as it is drawn.
struct Mark {
  const crds::RankMigration* migration;
  Time order{};         // to stop where a superstep ends
  Time begin{}, end{};  // of the pause; of the migration
  [[nodiscard]] bool moved() const { return migration->status.phase == MigrationPhase::kSucceeded; }
};

struct Stay {  // of a rank in a Set
  Time begin{}, end{};
  std::string set;  // "": unknown
};

Time time_of(const crds::RankMigrationStatus& status, MigrationPhase wanted) {
  const auto found = std::ranges::find(status.phase_times, wanted, &crds::PhaseTime::phase);
  return found == status.phase_times.end() ? Time{} : found->time;
}

std::optional<Mark> mark_of(const crds::RankMigration& m, Time now) {
  const auto& s = m.status;
  const bool ended = crds::is_finished(s.phase) && s.completion_time != Time{};
  Mark mark{.migration = &m, .order = time_of(s, MigrationPhase::kPausing), .end = ended ? s.completion_time : now};
  if (mark.order == Time{}) mark.order = ended ? mark.end : Time{};  // it ended before its pause
  if (mark.order == Time{}) return std::nullopt;
  mark.end = std::max(mark.order, mark.end);
  // All ranks have stopped when the checkpoint begins.
  mark.begin = time_of(s, MigrationPhase::kCheckpointing);
  if (mark.begin == Time{}) mark.begin = mark.end - from_seconds(std::clamp(s.pause.total_ms / 1000, 0.0, 86'400.0));
  mark.begin = std::clamp(mark.begin, mark.order, mark.end);
  return mark;
}

class Picture {
 public:
  Picture(const Shown& shown, std::span<const CallMade> calls, Time running, Time now)
      : job_(shown.job), calls_(calls), running_(running), now_(now) {
    const auto& s = job_.status;
    begin_ = s.start_time != Time{} ? s.start_time : job_.metadata.creation_timestamp;
    end_ = s.completion_time != Time{} ? s.completion_time : now;
    for (const auto& m : shown.migrations)
      if (const auto mark = mark_of(m, now)) marks_.push_back(*mark);
    std::ranges::stable_sort(marks_, {}, &Mark::order);
    for (const Mark& mark : marks_) {
      begin_ = std::min(begin_, mark.order);
      end_ = std::max(end_, mark.end);
    }
    for (const CallMade& call : calls_) begin_ = std::min(begin_, call.time), end_ = std::max(end_, call.time);
    seconds_ = std::max(to_seconds(end_ - begin_), 1e-3);
    name_sets();
    const auto ranks = static_cast<double>(std::max<std::uint32_t>(job_.spec.ranks, 1));
    row_ = std::clamp(700.0 / ranks, 0.8, 22.0);
    bottom_ = kTop + row_ * ranks;
    any_shares_ = calls_.size() * job_.spec.ranks <= kMostBars &&
                  std::ranges::any_of(calls_, [](const CallMade& call) { return !call.busy.empty(); });
    svg_ = Svg(kWidth, bottom_ + kFoot + (calls_.empty() ? 0 : 2 * (kPlot + kPlotGap)));
  }

  std::string draw() {
    heading();
    for (std::uint32_t i = 0; i < job_.spec.ranks; ++i) row(i);
    pauses();
    for (const Mark& mark : marks_) draw_mark(mark);
    restarts();
    ticks();
    svg_.time_axis(kLeft, kRight, bottom_ + 3, seconds_);
    legend();
    if (!calls_.empty()) {
      plot("α", &CallMade::alpha, &CallMade::alpha_next, 0);
      plot("D", &CallMade::d, &CallMade::d_next, 1);
    }
    return std::move(svg_).take();
  }

 private:
  static constexpr double kLeft = 84;

  void name_sets() {
    const auto add = [&](const std::string& set) {
      if (!set.empty()) sets_.try_emplace(set, sets_.size());
    };
    for (const auto& set : job_.status.ranks_per_set) add(set.set);
    for (const auto& place : job_.status.ranks) add(place.set);
    for (const Mark& mark : marks_) add(mark.migration->status.source_set), add(mark.migration->status.target_set);
  }
  [[nodiscard]] std::string colour(const std::string& set) const {
    const auto found = sets_.find(set);
    return found == sets_.end() ? kUnknown : colour_of_set(found->second);
  }
  [[nodiscard]] double x(Time t) const {
    return kLeft + (kRight - kLeft) * std::clamp(to_seconds(t - begin_) / seconds_, 0.0, 1.0);
  }
  [[nodiscard]] double top(std::uint32_t rank) const { return kTop + row_ * rank; }
  [[nodiscard]] std::string at(Time t) const { return crds::duration_text(to_seconds(t - begin_)); }

  void heading() {
    const auto& s = job_.status;
    svg_.text(kLeft, 22, shortened(headline(job_, now_), 140), "font-size=\"15\" font-weight=\"bold\"");
    std::string line = std::format("{}, {}", result_line(s), crds::duration_text(seconds_));
    const std::size_t drawn = static_cast<std::size_t>(std::ranges::count_if(marks_, &Mark::moved));
    if (drawn < s.migrations.succeeded)
      line += std::format("; {} older moves are not stored any more and not drawn", s.migrations.succeeded - drawn);
    svg_.text(kLeft, 40, line);
    double left = kLeft;
    for (const auto& [set, number] : by_number()) {
      if (left > kRight - 120) break;
      const std::string name = shortened(set, kLongestName);
      svg_.box(left, 50, 12, 10, std::format("fill=\"{}\"", colour_of_set(number)));
      svg_.text(left + 16, 59, name);
      left += 40 + 6.5 * static_cast<double>(name.size());
    }
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> by_number() const {
    std::vector<std::pair<std::string, std::size_t>> list(sets_.begin(), sets_.end());
    std::ranges::sort(list, {}, &std::pair<std::string, std::size_t>::second);
    return list;
  }

  // Where a rank was, by its moves and, in the last attempt, by where it is.
  [[nodiscard]] std::vector<Stay> stays_of(std::uint32_t rank) const {
    std::vector<Time> attempts{begin_};
    for (const auto& restart : job_.status.restarts) attempts.push_back(restart.time);
    std::vector<Stay> stays;
    for (std::size_t a = 0; a < attempts.size(); ++a) {
      const bool last = a + 1 == attempts.size();
      const Time from = attempts[a], until = last ? end_ : attempts[a + 1];
      stays.push_back({from, until, last && rank < job_.status.ranks.size() ? job_.status.ranks[rank].set : ""});
      bool first = true;
      for (const Mark& mark : marks_) {
        const auto& m = *mark.migration;
        if (m.spec.rank.value != rank || !mark.moved() || mark.end < from || mark.end > until) continue;
        stays.back().end = mark.end;
        if (first) stays.back().set = m.status.source_set;
        first = false;
        stays.push_back({mark.end, until, m.status.target_set});
      }
    }
    return stays;
  }

  void row(std::uint32_t rank) {
    const double height = row_ > 3 ? row_ - 1 : row_;
    if (row_ >= 9)
      svg_.text(kLeft - 8, top(rank) + row_ / 2 + 4, std::format("rank {}", rank),
                "text-anchor=\"end\" font-size=\"10\"");
    for (const Stay& stay : stays_of(rank)) {
      if (stay.end <= stay.begin) continue;
      const std::string set = stay.set.empty() ? "place unknown" : "in Set " + stay.set;
      svg_.group(std::format("rank {} {}, {} to {}", rank, set, at(stay.begin), at(stay.end)),
                 std::format("fill=\"{}\"", colour(stay.set)));
      Time from = stay.begin;
      if (running_ > from && running_ < stay.end) {  // while the pods start
        part(rank, from, running_, height, 0);
        from = running_;
      }
      Time window{};  // its begin
      for (const CallMade& call : calls_) {
        const Time begin = std::max(window, from), end = std::min(call.time, stay.end);
        window = call.time;
        if (!any_shares_ || end <= begin || rank >= call.busy.size()) continue;
        part(rank, begin, end, height, call.busy[rank]);
        from = end;
      }
      if (stay.end > from)  // how much it computed there is not known
        svg_.box(x(from), top(rank), std::max(x(stay.end) - x(from), 0.2), height,
                 any_shares_ ? "opacity=\"0.6\"" : "");
      svg_.end_group();
    }
  }
  void part(std::uint32_t rank, Time begin, Time end, double height, double share) {
    if (end > begin) svg_.share_bar(x(begin), top(rank), std::max(x(end) - x(begin), 0.2), height, share);
  }

  // One band for a wave, whose ranks share the pause.
  void pauses() {
    struct Pause {
      Time order = Time::max(), begin = Time::max(), end{};
      double ms = 0;
      std::size_t moved = 0, others = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint64_t>, Pause> waves;  // by wave and epoch
    for (const Mark& mark : marks_) {
      const auto& s = mark.migration->status;
      Pause& pause = waves[{s.wave, s.to_epoch}];
      pause.order = std::min(pause.order, mark.order);
      pause.begin = std::min(pause.begin, mark.begin);
      pause.end = std::max(pause.end, mark.end);
      pause.ms = std::max(pause.ms, s.pause.total_ms);
      ++(mark.moved() ? pause.moved : pause.others);
    }
    double free_from = 0;  // so that labels don't overlap
    for (const auto& [wave, pause] : waves) {
      const char* fill = pause.others > 0 && pause.moved == 0 ? "#c00" : "#222";
      const std::string length = crds::duration_text(pause.ms / 1000);
      svg_.group(std::format("wave {}, {}: pause {}, {} moved, {} did not", wave.first, at(pause.order), length,
                             pause.moved, pause.others),
                 std::format("fill=\"{}\"", fill));
      band(pause.order, pause.end, 0.15);
      band(pause.begin, std::min(pause.end, pause.begin + from_seconds(std::clamp(pause.ms / 1000, 0.0, 86'400.0))),
           0.4);
      svg_.end_group();
      const double left = x(pause.begin);
      if (left < free_from) continue;
      svg_.text(left, kTop - 17, length, std::format("font-size=\"10\" fill=\"{}\"", fill));
      free_from = left + 6.5 * static_cast<double>(length.size()) + 6;
    }
  }
  void band(Time begin, Time end, double opacity) {
    svg_.box(x(begin), kTop - 4, std::max(x(end) - x(begin), 1.0), bottom_ - kTop + 4,
             std::format("opacity=\"{}\"", opacity));
  }

  void draw_mark(const Mark& mark) {
    const auto& m = *mark.migration;
    if (m.spec.rank.value >= job_.spec.ranks) return;
    const double at_x = x(mark.end), low = top(m.spec.rank.value), high = low + row_;
    svg_.group(move_line(m, now_));
    if (mark.moved()) {
      svg_.line(at_x, low, at_x, high, "stroke=\"#222\" stroke-width=\"2\"");
    } else if (crds::is_finished(m.status.phase)) {
      const double reach = std::clamp(row_ / 2, 2.0, 6.0), middle = (low + high) / 2;
      for (const double slope : {-1.0, 1.0})
        svg_.line(at_x - reach, middle - slope * reach, at_x + reach, middle + slope * reach,
                  "stroke=\"#c00\" stroke-width=\"2\"");
    }
    svg_.end_group();
    if (row_ < 12 || !mark.moved()) return;
    svg_.text(at_x + 4, (low + high) / 2 + 4, shortened(m.status.source_set + "→" + m.status.target_set, kLongestName),
              "font-size=\"9\" stroke=\"#fff\" stroke-width=\"2.5\" paint-order=\"stroke\"");
  }

  void legend() {
    std::string text = "Row: a rank, in the colour of the Set where it ran.";
    if (any_shares_)
      text += " Strong part: the share of the time in which it computed; pale throughout: not known, or starting.";
    svg_.text(kLeft, bottom_ + 38, text);
    svg_.text(kLeft, bottom_ + 52,
              "Pale band: a wave, from the order to stop at a superstep's end; dark: the ranks' pause. Black line: the "
              "rank moved. "
              "Red: rolled back or failed. Tick: a rescheduling call.");
  }

  void restarts() {
    for (const auto& restart : job_.status.restarts) {
      svg_.group(std::format("restart at {}: {}: {}", at(restart.time), restart.reason, restart.message));
      svg_.line(x(restart.time), kTop - 8, x(restart.time), bottom_,
                "stroke=\"#c00\" stroke-width=\"1.5\" stroke-dasharray=\"4 3\"");
      svg_.end_group();
    }
  }

  void ticks() {
    double free_from = 0;
    for (const CallMade& call : calls_) {
      const double at_x = x(call.time);
      if (!call.moves && at_x < free_from) continue;
      free_from = at_x + 0.5;
      svg_.group(std::format("call after superstep {}, {}: α {} → {}, D {:.3g} → {:.3g}", call.superstep.value,
                             at(call.time), call.alpha, call.alpha_next, call.d, call.d_next));
      svg_.line(at_x, kTop - (call.moves ? 13 : 9), at_x, kTop - 5,
                call.moves ? "stroke=\"#222\" stroke-width=\"1.5\"" : "stroke=\"#888\"");
      svg_.end_group();
    }
  }

  // What each call left, as steps.
  void plot(const std::string& name, double CallMade::* before, double CallMade::* after, int number) {
    const double base = bottom_ + kFoot + kPlot + number * (kPlot + kPlotGap);
    double most = 0;
    for (const CallMade& call : calls_) most = std::max({most, call.*before, call.*after});
    const auto y = [&](double value) { return base - (most > 0 ? kPlot * value / most : 0); };
    svg_.line(kLeft, base, kRight, base, "stroke=\"#bbb\"");
    svg_.text(kLeft - 8, base, "0", "text-anchor=\"end\" font-size=\"10\"");
    svg_.text(kLeft - 8, y(most) + 8, std::format("{} {:.3g}", name, most), "text-anchor=\"end\"");
    double from = kLeft, value = calls_.front().*before;
    for (const CallMade& call : calls_) {
      const double at_x = x(call.time);
      svg_.line(from, y(value), at_x, y(value), "stroke=\"#0072b2\" stroke-width=\"1.5\"");
      if (value != call.*after)
        svg_.line(at_x, y(value), at_x, y(call.*after), "stroke=\"#0072b2\" stroke-width=\"1.5\"");
      from = at_x;
      value = call.*after;
    }
    svg_.line(from, y(value), kRight, y(value), "stroke=\"#0072b2\" stroke-width=\"1.5\"");
  }

  const crds::BspJob& job_;
  std::span<const CallMade> calls_;
  Time running_, now_, begin_{}, end_{};
  double seconds_ = 1, row_ = 20, bottom_ = 0;
  bool any_shares_ = false;  // of computing
  std::vector<Mark> marks_;
  std::map<std::string, std::size_t> sets_;  // their numbers
  Svg svg_{kWidth, 0};                       // until its height is known
};

}  // namespace

CallMade call_of(const crds::Decision& d) {
  return {.time = d.time,
          .superstep = d.superstep,
          .alpha = static_cast<double>(d.alpha),
          .alpha_next = static_cast<double>(d.alpha_next),
          .d = d.d,
          .d_next = d.d_next,
          .moves = d.outcome == "Migrating" || d.outcome == crds::kTrying || d.outcome == crds::kTakingBack};
}

CallMade call_of(const record::Call& call) {
  CallMade made{.time = from_rfc3339(call.time),
                .superstep = call.plan.superstep,
                .alpha = static_cast<double>(call.plan.now.alpha),
                .alpha_next = static_cast<double>(call.plan.next.alpha),
                .d = call.plan.now.d,
                .d_next = call.plan.next.d,
                .moves = call.params.migrates && !call.plan.moves.empty()};
  double window = 0;  // s
  std::vector<double> computed(call.snapshot.ranks.size());
  for (const auto& superstep : call.supersteps) {
    if (computed.empty() || superstep.compute_seconds.size() != computed.size()) return made;
    window += std::ranges::max(superstep.compute_seconds) + superstep.communication_seconds;
    for (std::size_t i = 0; i < computed.size(); ++i) computed[i] += superstep.compute_seconds[i];
  }
  if (window > 0)
    for (const double seconds : computed) made.busy.push_back(std::clamp(seconds / window, 0.0, 1.0));
  return made;
}

Result<std::vector<CallMade>> calls_in(std::string_view record, const crds::BspJob& job) {
  std::vector<CallMade> calls;
  std::size_t number = 0;
  for (std::size_t at = 0; at < record.size();) {
    const std::size_t end = std::min(record.find('\n', at), record.size());
    const std::string_view line = record.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto call = record::from_line(line);
    if (!call) return std::unexpected(call.error().in(std::format("line {}", number)));
    // A simulated call has no time; a namesake that was deleted has another uid.
    const bool same = call->job == job.metadata.name && (call->uid.empty() || call->uid == job.metadata.uid);
    if (same && !call->time.empty()) calls.push_back(call_of(*call));
  }
  if (calls.empty())
    return fail(ErrorCode::kInvalid, std::format("has no call of job {} as it is now", job.metadata.name));
  return calls;
}

Result<std::vector<CallMade>> calls_of_file(const std::string& file, const crds::BspJob& job) {
  if (file.empty()) return std::vector<CallMade>{};
  BSP_TRY(const std::string text, read_file(file));
  auto calls = calls_in(text, job);
  if (!calls) return std::unexpected(calls.error().in(file));
  return calls;
}

std::string timeline_svg(const Shown& shown, std::span<const CallMade> calls, Time running, Time now) {
  return Picture(shown, calls, running, now).draw();
}

}  // namespace bsp::screens
