// Between the threads that watch (one per kind) and the one caller of wait().
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
  // With a limit a watcher waits while that many events lie here; 0: none.
  Feed(std::size_t watchers, std::size_t limit) : missing_(watchers), limit_(limit) {}

  // False if the feed is closed.
  bool push(std::vector<WatchEvent> events);
  // A watcher's first list is complete. Called once by each.
  void complete();
  // The first list can't be had now; told to whoever waits for it.
  void failed(const Error& error);
  void close();

  // What is there, at once or as soon as there is something; nothing at the deadline.
  std::vector<WatchEvent> take(std::chrono::steady_clock::time_point deadline);
  // The same for the first look: nothing is taken until all of it has come. kTimeout, or why it does not come.
  Result<std::vector<WatchEvent>> take_all(std::chrono::steady_clock::time_point deadline);
  // All first lists have been taken by the last take().
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
