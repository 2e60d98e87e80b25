#include "base/net/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

#include "base/core/error.h"
#include "base/core/guard.h"
#include "base/core/log.h"

namespace bsp::net {
namespace {

// The event carries fd and generation: if a descriptor is closed and its number reused within one batch, its old events
// are recognised as stale.
std::uint64_t pack(int fd, std::uint32_t generation) {
  return static_cast<std::uint64_t>(generation) << 32 | static_cast<std::uint32_t>(fd);
}

}  // namespace

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(epoll_ && wake_, "epoll and eventfd are available");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = pack(wake_.get(), 0)}};
  check(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0, "eventfd can be watched");
}

// Objects that callbacks own may post, cancel and unwatch in their destructors (an unused Reply sends an error), so
// destroy the callbacks while the rest of the loop still exists.
Loop::~Loop() {
  std::exchange(timers_, {}).clear();
  std::exchange(watched_, {}).clear();
  for (;;) {
    std::vector<Callback> left;
    {
      std::scoped_lock lock(mutex_);
      left.swap(posted_);
    }
    if (left.empty()) return;
  }
}

void Loop::post(Callback work) {
  std::scoped_lock lock(mutex_);
  posted_.push_back(std::move(work));
  if (posted_.size() == 1) eventfd_write(wake_.get(), 1);
}

void Loop::stop() {
  std::scoped_lock lock(mutex_);
  stopped_ = true;
  eventfd_write(wake_.get(), 1);
}

void Loop::watch(int fd, Events events, Watcher watcher) {
  auto it = watched_.find(fd);
  bool known = it != watched_.end();
  Watched entry{++generation_, std::make_shared<Watcher>(std::move(watcher))};
  epoll_event event{.events = events, .data = {.u64 = pack(fd, entry.generation)}};
  check(epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0,
        "an open descriptor can be watched");
  watched_.insert_or_assign(fd, std::move(entry));
}

void Loop::change(int fd, Events events) {
  auto it = watched_.find(fd);
  check(it != watched_.end(), "only a watched descriptor's events change");
  epoll_event event{.events = events, .data = {.u64 = pack(fd, it->second.generation)}};
  check(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0, "an open descriptor can be watched");
}

void Loop::unwatch(int fd) {
  if (watched_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::at(SteadyTime when, Callback work) {
  TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(work));
  timer_times_.emplace(id, when);
  return id;
}

void Loop::cancel(TimerId timer) {
  auto it = timer_times_.find(timer);
  if (it == timer_times_.end()) return;
  timers_.erase({it->second, timer});
  timer_times_.erase(it);
}

int Loop::wait_ms() const {
  if (timers_.empty()) return -1;
  auto left = timers_.begin()->first.first - std::chrono::steady_clock::now();
  // Rounded up, because waking slightly early would spin.
  auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 60'000));
}

// A callback that throws must neither skip the others nor end the thread, and with it the process.
template <class Work>
void Loop::call(Work&& work) {
  if (const auto done = caught(work); !done) log_error("callback failed", {{"error", done.error().message}});
}

void Loop::run_timers() {
  auto now = std::chrono::steady_clock::now();
  // A timer that a timer's callback sets for "now" waits for the next iteration, so that I/O isn't starved.
  TimerId newest = next_timer_;
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    auto node = timers_.begin();
    if (node->first.second >= newest) break;
    auto entry = timers_.extract(node);
    timer_times_.erase(entry.key().second);
    call(entry.mapped());
  }
}

// A few at a time, so that I/O isn't starved: an answer that has arrived must be read before its time limit expires, however
// many requests were posted at once.
void Loop::run_posted() {
  constexpr std::ptrdiff_t kAtOnce = 16;
  std::vector<Callback> work;
  {
    std::scoped_lock lock(mutex_);
    const auto end = posted_.begin() + std::min(kAtOnce, std::ssize(posted_));
    work.assign(std::move_iterator(posted_.begin()), std::move_iterator(end));
    posted_.erase(posted_.begin(), end);
  }
  for (Callback& callback : work) call(callback);
}

void Loop::run() {
  while (true) {
    bool more = false;
    {
      std::scoped_lock lock(mutex_);
      if (stopped_) return;
      more = !posted_.empty();
    }
    turn(more ? 0 : wait_ms());
  }
}

void Loop::turn(int wait_ms) {
  epoll_event events[32];
  int count = epoll_wait(epoll_.get(), events, std::size(events), wait_ms);
  check(count >= 0 || errno == EINTR, "epoll_wait works");
  for (int i = 0; i < count; ++i) {
    int fd = static_cast<int>(events[i].data.u64 & 0xffffffff);
    if (fd == wake_.get()) {
      eventfd_t value;
      eventfd_read(wake_.get(), &value);
      continue;
    }
    auto it = watched_.find(fd);
    if (it == watched_.end() || it->second.generation != events[i].data.u64 >> 32) continue;
    std::shared_ptr<Watcher> keep = it->second.watcher;
    call([&] { (*keep)(events[i].events); });
  }
  run_posted();
  run_timers();
}

bool Loop::has_posted() {
  std::scoped_lock lock(mutex_);
  return !posted_.empty();
}

void Loop::run_due() {
  do turn(0);
  while (has_posted());
}

}  // namespace bsp::net
