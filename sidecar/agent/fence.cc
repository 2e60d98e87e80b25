#include "sidecar/agent/fence.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/core/log.h"

namespace bsp::sidecar {
namespace {

net::SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

long long seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

bool has_rank_zero(const wire::EpochPlan* plan, const std::string& pod) {
  return plan && !plan->members.empty() && plan->members[0].pod == pod;
}

// In a plan whose ranks are all in one pod, nobody is left to be heard.
net::SteadyTime Freshness::fresh(const wire::EpochPlan* plan, const std::string& pod, net::SteadyTime now) const {
  if (!plan) return operator_spoke_;
  if (plan->members.size() < 2) return now;
  if (!has_rank_zero(plan, pod)) return std::max(operator_spoke_, vouched_);
  net::SteadyTime oldest = now;
  for (const wire::Member& member : plan->members) {
    if (member.pod == pod) continue;
    const auto it = heard_.find(member.pod);
    oldest = std::min(oldest, it == heard_.end() ? net::SteadyTime::min() : it->second);
  }
  return std::max(operator_spoke_, oldest);
}

std::string Freshness::silent_peer(const wire::EpochPlan& plan, const std::string& pod, net::SteadyTime since) const {
  for (const wire::Member& member : plan.members) {
    if (member.pod == pod) continue;
    const auto it = heard_.find(member.pod);
    if (it == heard_.end() || it->second <= since) return std::format("rank {} ({})", member.rank, member.pod);
  }
  return {};
}

Fence::Fence(net::Loop& loop, std::string pod, std::chrono::milliseconds limit, Hooks hooks,
             std::optional<net::SteadyTime> before)
    : loop_(loop),
      pod_(std::move(pod)),
      limit_(limit),
      hooks_(std::move(hooks)),
      freshness_(steady_now()),
      earliest_end_(steady_now()) {
  if (before && *before < earliest_end_) {
    freshness_ = Freshness(*before);
    earliest_end_ += limit_ / 6;
  }
  next_.timer = loop_.after(std::chrono::milliseconds(0), [this] { check_due(); });
}

Fence::~Fence() {
  *alive_ = false;
  loop_.cancel(next_.timer);
}

// The timer does the rest. Only the first message after a silence is saved and forwarded at once, because bsp-init
// may have stopped the program.
void Fence::operator_spoke() {
  const auto now = steady_now();
  freshness_.operator_spoke(now);
  if (saved_fresh_ < now - limit_ / 2) save(now);
}

net::SteadyTime Fence::fresh() const { return freshness_.fresh(hooks_.plan(), pod_, steady_now()); }

std::chrono::milliseconds Fence::age() const {
  return std::chrono::ceil<std::chrono::milliseconds>(steady_now() - fresh());
}

void Fence::save(net::SteadyTime fresh) {
  saved_fresh_ = fresh;
  hooks_.save(fresh);
}

bool Fence::must_stay(net::SteadyTime ended) const {
  const auto now = steady_now();
  const wire::EpochPlan* plan = hooks_.plan();
  if (!plan || alone(*plan)) return false;
  // The operator asks for a status every two seconds.
  if (now < freshness_.operator_spoke() + limit_ / 6) return false;
  // The others may notice the operator's silence later than this pod.
  return now < ended + limit_ || needed_by_others();
}

void Fence::check_due() {
  const auto now = steady_now();
  const wire::EpochPlan* plan = hooks_.plan();
  const auto fresh = freshness_.fresh(plan, pod_, now);
  save(fresh);
  if (const auto due = freshness_.operator_spoke() + limit_ / 3; now < due) {
    if (std::exchange(asking_, false)) {
      log_info("the operator is back");
      freshness_.forget_peers();
    }
    return check_at(due);
  }
  if (!std::exchange(asking_, true))
    log_warning("the operator is silent: asking the other ranks",
                {{"seconds", seconds_of(now - freshness_.operator_spoke())}});
  if (plan)
    for (const wire::Member& member : plan->members)
      if (const bool rank_zero = has_rank_zero(plan, pod_); member.pod != pod_ && (rank_zero || member.rank == 0))
        ask(member, !rank_zero);
  const auto over = std::max(fresh + limit_, earliest_end_);
  // Before its first epoch a program can do nothing that counts, and no sidecar admits it to one any more.
  if (plan && now >= over && hooks_.computes()) hooks_.end_program(why());
  auto next = now + limit_ / 6;
  for (const auto sooner : {over, next_.retry})
    if (sooner > now) next = std::min(next, sooner);
  check_at(next);
}

void Fence::check_at(net::SteadyTime due) {
  loop_.cancel(next_.timer);
  next_.due = due;
  next_.timer = loop_.at(due, [this] { check_due(); });
}

bool Fence::alone(const wire::EpochPlan& plan) const {
  return plan.members.size() < 2 ||
         std::ranges::all_of(plan.members, [this](const wire::Member& member) { return member.pod == pod_; });
}

void Fence::ask(const wire::Member& member, bool answers_for_all) {
  const auto asked = steady_now();
  Asked& one = asked_[member.pod];
  if (one.under_way || asked < one.again) return;
  one = {.under_way = true, .again = asked + limit_ / 12};  // once in a round
  hooks_.ask(member, [this, alive = alive_, pod = member.pod, asked, answers_for_all](Result<net::Answer> answer) {
    if (!*alive) return;
    Asked& done = asked_[pod];
    done.under_way = false;
    if (!answer) {
      // The limit leaves time for few questions. One that was lost must not cost the time of two.
      done.again = next_.retry = steady_now() + limit_ / 30;
      if (done.again < next_.due) check_at(done.again);
      return;
    }
    if (!answers_for_all) return freshness_.heard(pod, asked);
    const auto age = answer->header.find(fencing::kAge);
    if (age == answer->header.end() || !age->is_number_unsigned()) return;
    // As good as infinite, and can't overflow.
    const auto reported = std::min<std::uint64_t>(age->get<std::uint64_t>(), 86'400'000);
    freshness_.vouched(asked, std::chrono::milliseconds(reported));
  });
}

std::string Fence::why() const {
  const auto now = steady_now();
  const wire::EpochPlan* plan = hooks_.plan();
  std::string who;
  if (has_rank_zero(plan, pod_))
    who = freshness_.silent_peer(*plan, pod_, now - limit_) + " does not answer";
  else if (plan)
    who = std::format("rank 0 ({}) does not answer, or is cut off as well", plan->members[0].pod);
  return std::format(
      "this pod is cut off: the operator has been silent for {} s and {}; another copy of the rank may start elsewhere",
      seconds_of(now - freshness_.operator_spoke()), who);
}

}  // namespace bsp::sidecar
