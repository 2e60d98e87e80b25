// Repeats a round on a thread of its own, as long as the object lives.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/core/error.h"

namespace bsp::controller {

class Rounds {
 public:
  using Next = Result<std::chrono::milliseconds>;  // how long the next round waits

  // `failing`: the words of the log's warning when a round fails with an error that the one before didn't have. The next round
  // then waits for `after_failure`. What `round` throws is such an error.
  Rounds(std::function<Next()> round, std::chrono::milliseconds after_failure, std::string failing)
      : round_(std::move(round)),
        after_failure_(after_failure),
        failing_(std::move(failing)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  // The destructor waits for the round that runs: stop, then close the connections that it may wait for.
  ~Rounds() = default;

  void stop() { thread_.request_stop(); }  // no further round, and no warning

 private:
  void run(const std::stop_token& stop) const;

  const std::function<Next()> round_;
  const std::chrono::milliseconds after_failure_;
  const std::string failing_;
  std::jthread thread_;  // last, because it uses everything above
};

}  // namespace bsp::controller
