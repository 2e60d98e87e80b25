#include "operator/screens/explain.h"

#include <algorithm>
#include <format>
#include <map>

#include "crds/rank_groups.h"
#include "crds/stored_status.h"
#include "operator/cli/table.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

using crds::JobPhase;
using crds::ReschedulingMode;

constexpr std::size_t kReasons = 5, kConditions = 3, kBlocked = 2, kMoves = 4;  // lines of each section

std::string message_of(const crds::BspJobStatus& s) {
  const std::string& why = s.message.empty() ? s.reason : s.message;
  return why.empty() ? "" : ": " + why;
}

// Whether a condition by itself keeps the scheduler from moving ranks; the kernel sets them (kernel/status.h, drain.h).
bool holds_ranks(const crds::Condition& c) {
  return c.status == crds::ConditionStatus::kTrue &&
         (c.type == "Stalled" || c.type == "MixedUnits" || c.type == "NoSupersteps" || c.reason == "NowhereToGo");
}

// The answer in one sentence.
std::string verdict(const crds::BspJob& job, Time now) {
  const auto& s = job.status;
  const auto& r = job.spec.rescheduling;
  const std::string phase(crds::to_string(s.phase));
  if (crds::is_finished(s.phase)) return std::format("The job has ended{}.", message_of(s));
  if (s.phase == JobPhase::kMigrating && s.wave_state.contains("checkpoint"))
    return "A checkpoint set is being made, for which no rank moves.";
  if (s.phase == JobPhase::kMigrating) return std::format("Ranks move now, in wave {}.", s.wave);
  if (s.phase != JobPhase::kRunning) return std::format("No rank moves while the job is {}{}.", phase, message_of(s));
  if (r.mode == ReschedulingMode::kOff)
    return "No rank moves by itself, because spec.rescheduling.mode is Off; a RankMigration moves one.";
  if (const auto held = std::ranges::find_if(s.conditions, holds_ranks); held != s.conditions.end())
    return std::format("No rank moves, because of {}, explained below.", held->type);
  if (!s.last_decision) {
    const auto first = s.alpha > 0 ? s.alpha : r.alpha;
    if (s.superstep.value > first)
      return std::format("No rank has moved: no call of {} has been reported, and the job is at superstep {}.",
                         crds::to_string(r.heuristic), s.superstep.value);
    return std::format("No rank has moved: the first call of {} follows about superstep {}, and the job is at {}.",
                       crds::to_string(r.heuristic), first, s.superstep.value);
  }
  const auto& d = *s.last_decision;
  const std::string call =
      std::format("the last call, after superstep {} ({} ago),", d.superstep.value, cli::age(d.time, now));
  if (d.outcome == "Migrating") return std::format("Ranks moved, because {} predicted a gain.", call);
  if (d.outcome == crds::kTrying)
    return std::format("One rank moved, to try a Set of whose speed nothing is known, as {} hopes for a gain there.",
                       call);
  if (d.outcome == crds::kTakingBack)
    return std::format("Ranks went back, because supersteps were longer after the wave that {} takes back.", call);
  if (d.outcome == crds::kResizing)
    return std::format("No rank moves, because {} gave more CPU in place to ranks that their limit holds back.", call);
  if (d.outcome == "Advised")
    return std::format("No rank moves: {} advises {}, but spec.rescheduling.mode is Advise.", call,
                       d.resizes.empty() ? "moves" : "more CPU in place");
  if (d.outcome == "BelowMinGain")
    return std::format("No rank moves: {} found a gain below spec.rescheduling.minGain ({:.3g} %).", call,
                       r.min_gain * 100);
  return std::format("No rank moves: {} found nothing to gain.", call);
}

// "ranks 0-3 can't move now: …", the most common reason first.
std::vector<std::string> blocked_lines(const crds::RankPlaces& places) {
  std::map<std::string, std::size_t> ranks;  // by reason
  for (const auto& place : places)
    if (!place.blocked_reason.empty()) ++ranks[place.blocked_reason];
  std::vector<std::pair<std::string, std::size_t>> common(ranks.begin(), ranks.end());
  std::ranges::stable_sort(common, std::greater{}, &std::pair<std::string, std::size_t>::second);
  const auto groups = crds::group_ranks(places.size(), [&](std::size_t i) { return places[i].blocked_reason; });
  std::vector<std::string> lines;
  for (const auto& [reason, count] : common)
    lines.push_back(printable(std::format("{} {}: {}", count == 1 ? "rank" : "ranks", groups.at(reason), reason)));
  return lines;
}

// How the last resizes went, the newest first.
std::vector<std::string> resize_lines(const std::vector<crds::RankResize>& resizes, Time now) {
  std::vector<std::string> lines;
  for (auto r = resizes.rbegin(); r != resizes.rend(); ++r)
    lines.push_back(std::format("rank {} on {}: CPU limit {} → {}, {} {} ago{}", r->rank.value, r->node,
                                crds::cpu_text(r->from_milli), crds::cpu_text(r->to_milli), crds::to_string(r->phase),
                                cli::age(r->time, now), r->message.empty() ? "" : ": " + r->message));
  return lines;
}

class Page {
 public:
  explicit Page(Size size) : size_(size) {}

  void line(const std::string& text, std::size_t most = 1) {
    for (std::string& one : wrapped(printable(text), size_.columns, most)) lines_.push_back(std::move(one));
  }
  // A heading and its lines, of which the first `most` are shown; nothing if there are none.
  void section(const std::string& heading, const std::vector<std::string>& texts, std::size_t most) {
    if (texts.empty()) return;
    lines_.emplace_back();
    line(heading);
    for (std::size_t i = 0; i < std::min(texts.size(), most); ++i) line("  " + texts[i], 2);
    if (texts.size() > most) line(std::format("  and {} more", texts.size() - most));
  }
  std::vector<std::string> take(const std::string& rest) && {
    if (lines_.size() <= size_.lines) return std::move(lines_);
    lines_.resize(size_.lines - 1);
    line(rest);
    return std::move(lines_);
  }

 private:
  Size size_;
  std::vector<std::string> lines_;
};

// Auto's objective is the rest of the run, the others' is one superstep.
std::vector<std::string> decision_lines(const crds::BspJob& job) {
  const crds::Decision& d = *job.status.last_decision;
  const bool is_rest = job.spec.rescheduling.heuristic == crds::Heuristic::kAuto;
  std::vector<std::string> lines = crds::why_lines(d, kReasons);
  // By price, the message says what is predicted.
  const std::string predicted =
      job.spec.objective.chosen() != crds::ObjectiveType::kTime
          ? ""
          : std::format("{} predicted {} → {}; ", is_rest ? "time to the end" : "superstep",
                        crds::duration_text(d.objective_before), crds::duration_text(d.objective_after));
  lines.push_back(std::format("{}next call about superstep {}: α {} → {}, D {:.3g} → {:.3g}", predicted,
                              d.superstep.value + d.alpha_next, d.alpha, d.alpha_next, d.d, d.d_next));
  return lines;
}

}  // namespace

std::vector<std::string> explain(const Shown& shown, Time now, Size size) {
  const auto& s = shown.job.status;
  Page page(size);
  page.line(headline(shown.job, now));
  page.line(result_line(s));
  page.line(verdict(shown.job, now), 2);
  if (s.last_decision) page.section(s.last_decision->message, decision_lines(shown.job), kReasons + 1);
  page.section("What slows the job down or keeps ranks where they are:", condition_lines(s.conditions), kConditions);
  page.section("Ranks that can't move now:", blocked_lines(s.ranks), kBlocked);
  page.section("More CPU in place, the newest first:", resize_lines(s.resizes, now), kMoves);
  std::vector<std::string> moves;
  for (const auto* m : newest_first(shown.migrations)) moves.push_back(move_line(*m, now));
  page.section("Moves, the newest first:", moves, kMoves);
  return std::move(page).take(std::format("and more: kubectl describe bspjob {}", shown.job.metadata.name));
}

}  // namespace bsp::screens
