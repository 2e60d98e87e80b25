#include "operator/reconcile/kernel/rescheduling/advisor.h"

#include <algorithm>
#include <format>
#include <utility>

namespace bsp::reconcile {

void Advisor::begin(const crds::BspJob& job) {
  if (rescheduler_ && attempt_ == job.status.attempt) return;
  rescheduler_ = std::make_unique<Rescheduler>(job, job.status.epoch->sets.size(), options_.records);
  attempt_ = job.status.attempt;
  call_.reset();
  held_.reset();
  tried_wave_ = ~0u;
}

Advice Advisor::advance(const Observed& o) {
  Advice advice{.status = o.job.status};
  if (!rescheduler_ || attempt_ != o.job.status.attempt || !o.job.status.epoch) return advice;
  if (rescheduler_->follow(o.job.spec)) {
    // What was decided under the former one is not carried out any more.
    call_.reset();
    held_.reset();
  }
  const bool ended = crds::is_finished(o.job.status.phase);
  if (!ended && !call_) call_ = next_call(o, advice);
  if (!ended) advice.call = call_;
  // What has been measured since the last wave is all there will be of it, if another is to begin.
  const bool wave_to_come = (call_ && !call_->moves.empty()) || std::ranges::any_of(o.migrations, [](const auto& m) {
                              return !crds::is_finished(m.status.phase);
                            });
  advice.gains = rescheduler_->realised(o.job.status, ended || wave_to_come);
  rescheduler_->store(advice.status, o);
  return advice;
}

std::optional<Decided> Advisor::next_call(const Observed& o, Advice& advice) {
  const bool may_report = !reported_ || o.steady >= *reported_ + options_.calls;
  std::optional<Decided> call;
  while (!call) {
    call = rescheduler_->advance(o);
    if (!call) break;
    ++unreported_;
    std::ranges::copy(call->text, std::back_inserter(advice.text));
    const bool moves = !call->moves.empty() && o.job.status.wave != tried_wave_;
    if (moves || !call->resizes.empty() || may_report) break;
    if (call->record) advice.records.push_back(*std::exchange(call->record, nullptr));
    if (call->moves.empty()) held_ = std::move(call);
    call.reset();
  }
  if (!call && held_ && may_report) call = std::exchange(held_, std::nullopt);
  if (!call) return std::nullopt;
  held_.reset();
  reported_ = o.steady;
  if (!call->moves.empty()) tried_wave_ = o.job.status.wave;
  if (const std::uint64_t others = std::exchange(unreported_, 0) - 1; others > 0)
    call->decision.message += std::format(" ({} earlier calls are not reported)", others);
  return call;
}

}  // namespace bsp::reconcile
