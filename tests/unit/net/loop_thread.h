// A loop that runs in its own thread.
#pragma once

#include <functional>
#include <future>
#include <thread>

#include "base/net/loop.h"

namespace bsp::net {

// Declare it after what the loop's callbacks refer to: then it ends first.
class LoopThread {
 public:
  LoopThread() : thread_([this] { loop.run(); }) {}
  ~LoopThread() {
    loop.stop();
    thread_.join();
  }

  // Runs `work` in the loop's thread and waits for it.
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  Loop loop;

 private:
  std::thread thread_;
};

}  // namespace bsp::net
