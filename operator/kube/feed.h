// A queue of events between the watch threads (one per kind) and the caller of wait().
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "operator/kube/client.h"

namespace bsp::kube {

class Feed {
 public:
  // A watcher blocks while the queue holds `limit` events; 0 means no limit.
  Feed(std::size_t watchers, std::size_t limit) : missing_(watchers), limit_(limit) {}

  // Returns false if the feed is closed.
  bool push(std::vector<WatchEvent> events);
  // Each watcher calls this once, when its first list is complete.
  void complete();
  // Reports that a first list failed to those that wait for it.
  void failed(const Error& error);
  void close();

  // All queued events. Waits for the first one; empty at the deadline.
  std::vector<WatchEvent> take(std::chrono::steady_clock::time_point deadline);
  // All events of the first lists, once they are complete. kTimeout, or the reason why a list fails.
  Result<std::vector<WatchEvent>> take_all(std::chrono::steady_clock::time_point deadline);
  // Whether all first lists have been taken.
  [[nodiscard]] bool is_complete();
  [[nodiscard]] std::optional<Error> error();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t missing_;
  const std::size_t limit_;
  std::deque<WatchEvent> events_;
  std::optional<Error> error_;
  bool closed_ = false;
};

}  // namespace bsp::kube
