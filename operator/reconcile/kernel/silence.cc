#include "operator/reconcile/kernel/silence.h"

#include <algorithm>
#include <format>
#include <set>
#include <string_view>

#include "base/core/counted.h"
#include "base/core/first_few.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {
namespace {

// Other sidecars answer every few seconds; after a gap counting starts again.
constexpr std::chrono::seconds kStale{15};
constexpr std::size_t kAsked = 3;

// The sidecar of a rank that should answer: its pod exists and has not been seen to end.
const SidecarFacts* expected(const crds::RankPlace& place, const Observed& o) {
  const PodFacts* pod = o.pod(place.seat());
  if (!pod || pod->deleting || pod->app(place.local).ended) return nullptr;
  const SidecarFacts* facts = o.sidecar(place.seat());
  if (!facts) return nullptr;
  if (facts->status && facts->status->phase == wire::RankPhase::kExited) return nullptr;
  // One that has never answered may be starting; once the job runs it counts.
  if (!facts->status && o.job.status.phase == crds::JobPhase::kStarting) return nullptr;
  return facts;
}

// Ranks of one pod have one sidecar, which counts once.
class FirstOfPod {
 public:
  explicit FirstOfPod(const Observed& o) : alone_(most_seats(o.job) == 1) {}
  bool is_first(const crds::RankPlace& place) { return alone_ || pods_.insert(place.pod).second; }

 private:
  const bool alone_;
  std::set<std::string_view> pods_;
};

FirstFew untrusted_ranks(const Observed& o, const crds::BspJobStatus& status) {
  FirstFew ranks;
  if (!has_places(status.phase)) return ranks;
  for (const crds::RankPlace& place : status.ranks)
    if (const SidecarFacts* facts = o.sidecar(place.seat()); facts && facts->untrusted)
      ranks.add(std::to_string(place.rank.value));
  return ranks;
}

bool has_bad_node(const crds::RankPlace& place, const Observed& o) {
  const PodFacts* pod = o.pod(place.seat());
  return o.node_troubles.contains(pod->node.empty() ? place.node : pod->node);
}

}  // namespace

void Vouchers::note(bool hears, const std::string& who, SteadyTime now) {
  by = who;
  if (hears) {
    heard = now;
    denied_since = denied = {};
    return;
  }
  if (denied_since == SteadyTime{} || now > denied + kStale) denied_since = now;
  denied = now;
}

Hearing hearing_of(const Observed& o) {
  Hearing hearing;
  FirstOfPod sidecars(o);
  for (const crds::RankPlace& place : o.job.status.ranks)
    if (const SidecarFacts* facts = expected(place, o); facts && sidecars.is_first(place)) {
      const bool heard = facts->unreachable_since == SteadyTime{};
      hearing.heard += heard;
      hearing.silent += !heard && !has_bad_node(place, o);
    }
  return hearing;
}

Inquiry inquiry_about_silence(const Observed& o) {
  Inquiry inquiry;
  if (!o.job.status.epoch) return inquiry;
  std::set<std::string> about;
  for (const wire::Member& member : o.job.status.epoch->members) {
    const SidecarFacts* facts = o.sidecar(seat_of(member));
    if (!facts) continue;
    if (facts->unreachable_since != SteadyTime{})
      about.insert(member.pod);
    else if (facts->status && inquiry.asked.size() < kAsked)
      inquiry.asked.push_back(&member);
  }
  inquiry.about.assign(about.begin(), about.end());
  if (inquiry.about.empty()) inquiry.asked.clear();
  return inquiry;
}

Silence judge_silence(const Observed& o, const JobLimits& limits) {
  Silence silence;
  std::size_t expected_ones = 0, unexplained = 0;
  FirstOfPod sidecars(o);
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const SidecarFacts* facts = expected(place, o);
    if (!facts) continue;
    const bool counts = sidecars.is_first(place);
    expected_ones += counts;
    if (facts->unreachable_since == SteadyTime{}) continue;
    unexplained += counts && !has_bad_node(place, o);
    if (o.steady > facts->unreachable_since + limits.unreachable)
      silence.ranks.push_back({place.rank.value, place.seat(), facts->unreachable_since, false, ""});
  }
  if (silence.ranks.empty()) return silence;
  const Hearing& all = o.everywhere;
  if (2 * unexplained > expected_ones)
    silence.own_fault =
        std::format("{} of the {} of this job do not answer", unexplained, counted(expected_ones, "sidecar"));
  else if (2 * all.silent > all.heard + all.silent)
    silence.own_fault =
        std::format("{} of the {} of all jobs do not answer", all.silent, counted(all.heard + all.silent, "sidecar"));
  for (Silence::Rank& rank : silence.ranks) {
    const crds::RankPlace& place = o.job.status.ranks[rank.rank];
    const Vouchers& others = o.sidecars.at(rank.seat).vouchers;
    const Duration limit = has_bad_node(place, o) ? limits.unreachable : limits.isolated;
    const bool denied = others.denied_since != SteadyTime{} && o.steady <= others.denied + kStale;
    const SteadyTime last_sign = std::max({rank.since, others.heard, o.progress});
    rank.gone =
        silence.own_fault.empty() && denied && o.steady > others.denied_since + limit && o.steady > last_sign + limit;
    rank.text = std::format("the sidecar of rank {} ({}) does not answer the operator", rank.rank, name_of(rank.seat));
    if (rank.gone)
      rank.text += std::format(" and was not heard by {} for {:.0f} s", others.by, to_seconds(limit)) + where(place, o);
    else if (denied)
      rank.text += std::format(", and {} does not hear it either{}", others.by, where(place, o));
    else if (others.heard != SteadyTime{})
      rank.text += std::format("; {} hears it, so the job is left alone", others.by);
    else
      rank.text += "; no other rank could be asked, so the job is left alone" + where(place, o);
  }
  return silence;
}

std::vector<const char*> warn_of_silence(const Observed& o, const Silence& silence, crds::BspJobStatus& status,
                                         bool& changed) {
  std::vector<const char*> turned_on;
  auto show = [&](const char* type, bool on, const char* reason, const std::string& message) {
    const bool was = is_on(status, type);
    if (was == on && (!on || crds::find_condition(status.conditions, type)->message == with_remedy(type, message)))
      return;
    turn_condition(o, status, type, on, reason, message);
    changed = true;
    if (!was) turned_on.push_back(type);
  };
  const bool cut_off = !silence.own_fault.empty();
  show(kOperatorCutOff, cut_off, cut_off ? "MostAreSilent" : "Heard",
       cut_off ? silence.own_fault +
                     ": the operator suspects its own network, so it ends and restarts nothing until it hears them "
                     "again"
               : "the operator hears the sidecars");
  std::string text;
  constexpr std::size_t kMostNamed = 3;
  for (std::size_t i = 0; i < std::min(silence.ranks.size(), kMostNamed); ++i)
    text += (text.empty() ? "" : "; ") + silence.ranks[i].text;
  if (silence.ranks.size() > kMostNamed) text += std::format("; and {} more", silence.ranks.size() - kMostNamed);
  const bool silent = !cut_off && !silence.ranks.empty();
  show(kSidecarSilent, silent, silent ? "NoAnswer" : "Heard", silent ? text : "every sidecar answers");
  const FirstFew untrusted = untrusted_ranks(o, status);
  show(kCertificatesRefused, !untrusted.empty(), untrusted.empty() ? "Accepted" : "Renewing",
       untrusted.empty()
           ? "the sidecars and the operator accept each other's certificates"
           : std::format("the operator and the sidecars of {} don't accept each other's certificates, as after the "
                         "loss of its seed; new ones reach a pod within minutes, until when the job runs on, its "
                         "superstep isn't known and no rank moves",
                         untrusted.text("rank")));
  return turned_on;
}

}  // namespace bsp::reconcile
