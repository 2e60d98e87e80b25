// Event loop: one thread that waits for descriptors, timers and posted work.
//
// If a callback throws, the loop logs it and goes on. Call everything but post() and stop() only from the loop's thread
// (or before run()).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/core/fd.h"

namespace bsp::net {

using SteadyTime = std::chrono::steady_clock::time_point;

class Transport;  // link.h

class Loop {
 public:
  using Callback = std::move_only_function<void()>;
  using Events = std::uint32_t;  // EPOLLIN | EPOLLOUT | …
  using Watcher = std::function<void(Events)>;
  using TimerId = std::uint64_t;  // 0: none

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs `work` in the loop's thread, in order. From any thread.
  void post(Callback work);
  // Makes run() return. From any thread, and from a signal handler's self-pipe reader.
  void stop();

  // Calls `watcher` when `fd` has one of `events`, an error or a hang-up. A second call for the same fd replaces both.
  // The watcher may unwatch itself.
  void watch(int fd, Events events, Watcher watcher);
  void change(int fd, Events events);
  void unwatch(int fd);

  TimerId at(SteadyTime when, Callback work);
  TimerId after(std::chrono::nanoseconds delay, Callback work) {
    return at(std::chrono::steady_clock::now() + delay, std::move(work));
  }
  void cancel(TimerId timer);

  void run();
  // What is posted, due or ready now, without waiting. Instead of run(), by who turns the clock.
  void run_due();

  // Carries the calls of this loop's LinkPeers instead of TLS; null: TLS. Set it before the first, and let it live as long.
  void set_transport(Transport* transport) { transport_ = transport; }
  [[nodiscard]] Transport* transport() const { return transport_; }

 private:
  struct Watched {
    std::uint32_t generation;
    std::shared_ptr<Watcher> watcher;
  };
  template <class Work>
  static void call(Work&& work);
  bool has_posted();
  void turn(int wait_ms);
  int wait_ms() const;
  void run_timers();
  void run_posted();

  Fd epoll_;
  Fd wake_;
  std::unordered_map<int, Watched> watched_;
  std::uint32_t generation_ = 0;
  std::map<std::pair<SteadyTime, TimerId>, Callback> timers_;
  std::unordered_map<TimerId, SteadyTime> timer_times_;
  TimerId next_timer_ = 1;
  Transport* transport_ = nullptr;
  std::mutex mutex_;  // guards the two below
  std::vector<Callback> posted_;
  bool stopped_ = false;
};

}  // namespace bsp::net
