#include "operator/reconcile/shell/job/event_queue.h"

namespace bsp::reconcile {

void EventQueue::add(const Event& event) const {
  calls_->in_order(
      [recorder = recorder_, job = job_, event] { recorder->record(job.named(), event, SystemClock::now()); });
}

}  // namespace bsp::reconcile
