#include "operator/kube/feed.h"

#include <iterator>

namespace bsp::kube {

bool Feed::push(std::vector<WatchEvent> events) {
  if (events.empty()) return true;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || limit_ == 0 || events_.size() < limit_; });
  if (closed_) return false;
  std::ranges::move(events, std::back_inserter(events_));
  lock.unlock();
  changed_.notify_all();
  return true;
}

void Feed::complete() {
  {
    const std::lock_guard lock(mutex_);
    --missing_;
    error_.reset();
  }
  changed_.notify_all();
}

void Feed::failed(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
  }
  changed_.notify_all();
}

void Feed::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    error_ = Error{ErrorCode::kUnavailable, "the API client is closed", false};
  }
  changed_.notify_all();
}

std::vector<WatchEvent> Feed::take(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const bool was_missing = missing_ > 0;
  changed_.wait_until(lock, deadline,
                      [&] { return !events_.empty() || closed_ || (was_missing && (missing_ == 0 || error_)); });
  std::vector<WatchEvent> taken(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
  lock.unlock();
  changed_.notify_all();
  return taken;
}

Result<std::vector<WatchEvent>> Feed::take_all(std::chrono::steady_clock::time_point deadline) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return closed_ || missing_ == 0 || (error_ && !error_->retryable); });
    if (missing_ > 0 && error_) return std::unexpected(*error_);
    if (missing_ > 0) return fail(ErrorCode::kTimeout, "timed out waiting for the first list", true);
  }
  return take(std::chrono::steady_clock::time_point{});
}

bool Feed::is_complete() {
  const std::lock_guard lock(mutex_);
  return missing_ == 0 && events_.empty();
}

std::optional<Error> Feed::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace bsp::kube
