// A thread that nobody joins, because the storage that it waits for may hang for ever. It shares this with the loop's thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/net/loop.h"

namespace bsp::sidecar {

class Worker {
 public:
  explicit Worker(net::Loop& loop) : loop_(&loop) {}

  // In the loop's thread. The worker must only use what `body` holds, and this object.
  static void start(const std::shared_ptr<Worker>& worker, std::function<void()> body) {
    std::thread([worker, body = std::move(body)]() mutable {
      body();
      body = nullptr;  // what it holds goes before it counts as ended
      worker->ended_ = true;
    }).detach();
  }

  // From the worker's thread: `work` runs in the loop's, unless its owner is gone.
  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (loop_) loop_->post([work = std::move(work)] { work(); });
  }
  // Likewise, by a worker that holds nothing any more: whoever hears of its result can start the next one.
  void post_last(std::function<void()> work) {
    ended_ = true;
    post(std::move(work));
  }
  // In the loop's thread: the owner goes, or has no use for the result. Nothing that was posted may touch the owner afterwards.
  void give_up() {
    given_up_ = true;
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }
  [[nodiscard]] const std::atomic<bool>& given_up() const { return given_up_; }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::atomic<bool> given_up_ = false, ended_ = false;
  std::mutex mutex_;
  net::Loop* loop_;  // null: there is none any more
};

}  // namespace bsp::sidecar
