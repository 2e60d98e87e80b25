#include "operator/reconcile/shell/job/log_tails.h"

namespace bsp::reconcile {

std::optional<std::string> LogTails::of(const Seat& seat) {
  if (!read_) return "";
  if (!tail_ || tail_->seat != seat) {
    tail_ = std::make_shared<Tail>();
    tail_->seat = seat;
    tail_->asked = std::chrono::steady_clock::now();
    calls_->once("read the log of " + name_of(seat), [read = read_, job = job_, tail = tail_] {
      std::string text = read(job.at.name_space, tail->seat);
      const std::lock_guard lock(tail->mutex);
      tail->text = std::move(text);
    });
  }
  {
    const std::lock_guard lock(tail_->mutex);
    if (tail_->text) return tail_->text;
  }
  if (std::chrono::steady_clock::now() > tail_->asked + kPatience) return "";
  return std::nullopt;
}

}  // namespace bsp::reconcile
