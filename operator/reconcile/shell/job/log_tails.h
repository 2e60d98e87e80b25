// The last lines of a failed rank's log, read off the worker. They belong to the status that reports the failure, which is
// stored a little later for that, but does not wait long for a node that does not answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "operator/reconcile/shell/job/job_parts.h"

namespace bsp::reconcile {

class LogTails {
 public:
  static constexpr std::chrono::seconds kPatience{5};
  explicit LogTails(const JobParts& parts)
      : read_(parts.shell.options.log_tail), job_(parts.job), calls_(parts.calls) {}

  // nullopt: it is being read. "": there is none, or it did not come in time.
  std::optional<std::string> of(const Seat& seat);

 private:
  struct Tail {
    Seat seat;
    std::chrono::steady_clock::time_point asked;
    std::mutex mutex;  // of the last
    std::optional<std::string> text;
  };
  const std::function<std::string(const std::string& name_space, const Seat& seat)> read_;
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  std::shared_ptr<Tail> tail_;  // the last that was asked for
};

}  // namespace bsp::reconcile
