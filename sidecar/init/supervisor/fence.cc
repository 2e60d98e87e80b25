#include "sidecar/init/supervisor/fence.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/core/read_file.h"
#include "crds/fencing.h"
#include "crds/names.h"
#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr std::chrono::milliseconds kCheckInterval{1000};
constexpr std::chrono::milliseconds kHeldCheckInterval{200};

std::string seconds_text(std::chrono::steady_clock::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

std::optional<std::uint32_t> number_in(const std::string& descriptor, std::string_view key) {
  const std::string text = "\n" + descriptor, begin = "\n" + std::string(key) + "=";
  const std::size_t at = text.find(begin);
  std::uint32_t number = 0;
  if (at == std::string::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + at + begin.size(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// A rank without peers has no second copy: the operator couldn't find out that the first one is cut off.
bool in_epoch_with_peers(const std::string& descriptor) {
  const auto read = read_file(descriptor);
  if (!read) return read.error().code != ErrorCode::kNotFound;
  return number_in(*read, names::kEpochRanks).value_or(0) > 1;
}

// A message that has waited in the socket doesn't become newer: the timestamp is from the machine's clock.
void Fence::vouched(std::int64_t steady_ns) {
  const Steady::time_point at{std::chrono::nanoseconds(steady_ns)};
  if (!fresh_) return;
  fresh_ = std::max(*fresh_, std::min(at, Steady::now()));
  if (held_) next_ = {};
}

std::optional<std::string> Fence::check(pid_t program, bool running) {
  const auto now = Steady::now();
  if (now < next_) return std::nullopt;
  next_ = now + kCheckInterval;
  // A program that is stopped at a gate continues only when a sidecar says so.
  if (!running || program <= 0) return std::nullopt;
  if (!fresh_) {
    // The descriptor, not a message from the sidecar, lets a program in: there may never be another message.
    if (in_epoch_with_peers(options_.run_dir + "/epoch")) fresh_ = now;
    return std::nullopt;
  }
  const auto silent = now - *fresh_;
  const auto stop_after = fencing::stop_after(options_.fence_limit);
  if (silent < stop_after) {
    if (held_) release();
    next_ = std::min(next_, *fresh_ + stop_after);
    return std::nullopt;
  }
  const bool newly_held = !held_;
  hold(program);  // before anything that could take time
  if (newly_held)
    std::fprintf(
        stderr,
        "bsp-init: for %s no sidecar has vouched that this pod is not cut off, and another copy of the rank may "
        "start elsewhere: the program is stopped until one does\n",
        seconds_text(silent).c_str());
  next_ = now + kHeldCheckInterval;
  if (silent < fencing::end_after(options_.fence_limit)) return std::nullopt;
  return "for " + seconds_text(silent) +
         " no sidecar has vouched that this pod is not cut off; another copy of the rank may run elsewhere";
}

// Repeated at each check: a process may have been forked while the others were stopped.
void Fence::hold(pid_t program) {
  if (!held_) held_at_ = Steady::now();
  held_ = true;
  // If /proc can't be read, the program alone until the next check.
  for (const ProcessStat& process :
       descendants_of_init().value_or(std::vector{ProcessStat{.pid = program, .name = ""}})) {
    if (process.state == 'T' || process.state == 'Z') continue;
    ::kill(process.pid, SIGSTOP);
    stopped_.insert(process.pid);
  }
}

// A program that was about to stop itself at a gate does so now; one that had just done so finds no new epoch and
// stops again (shim/epoch/gate.cc).
void Fence::release() {
  const auto all = descendants_of_init();
  if (!all) return;  // until the next check
  held_ = false;
  std::fprintf(stderr, "bsp-init: a sidecar vouches for this pod again: the program continues\n");
  for (const ProcessStat& process : *all)
    if (stopped_.contains(process.pid)) ::kill(process.pid, SIGCONT);
  stopped_.clear();
}

void Fence::forget() {
  held_ = false;
  stopped_.clear();
  fresh_.reset();
}

}  // namespace bsp::init
