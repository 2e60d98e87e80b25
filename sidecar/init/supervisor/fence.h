// Stops the running program while no sidecar vouches that this pod is not cut off. crds/fencing.h has the limits and why.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sidecar/init/supervisor/container.h"

namespace bsp::init {

// By the epoch's descriptor, whether another copy of the rank may start while this pod is cut off. One that can't be read counts.
bool in_epoch_with_peers(const std::string& descriptor);
// Of the descriptor's text, as of names::kEpochRank; nullopt: it has none.
std::optional<std::uint32_t> number_in(const std::string& descriptor, std::string_view key);

class Fence {
 public:
  using Steady = std::chrono::steady_clock;
  explicit Fence(const Options& options) : options_(options) {}

  // A sidecar has vouched for this pod at that time of the steady clock.
  void vouched(std::int64_t steady_ns);

  [[nodiscard]] Steady::time_point due() const { return next_; }
  // If it is due: stops the program's processes, or lets them go on. Returns why the program must be killed, nullopt: it needn't be.
  // Call it after the control socket was read, so that messages waiting there count.
  std::optional<std::string> check(pid_t program, bool running);

  [[nodiscard]] bool holds() const { return held_; }
  [[nodiscard]] bool has_stopped(pid_t pid) const { return stopped_.contains(pid); }
  [[nodiscard]] Steady::time_point held_at() const { return held_at_; }

  // Another program comes here.
  void forget();

 private:
  void hold(pid_t program);
  void release();

  const Options& options_;
  std::optional<Steady::time_point> fresh_;  // when a sidecar last vouched for this pod; not set: not needed yet
  Steady::time_point next_{};                // when to check it again
  bool held_ = false;
  Steady::time_point held_at_{};
  std::set<pid_t> stopped_;  // by this process, not by themselves
};

}  // namespace bsp::init
