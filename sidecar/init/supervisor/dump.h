// One dump of the stopped program, at the source of a move or for a checkpoint set: a worker first finds what the program has written in
// its pod (carry.h); criu starts when that can be moved, and both run until the image is whole.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/memory/guards.h"
#include "sidecar/init/memory/unkept_memory.h"
#include "sidecar/init/supervisor/container.h"
#include "sidecar/transfer/capture_client.h"

namespace bsp::init {

class Dump {
 public:
  using Steady = std::chrono::steady_clock;
  // `criu_runs` is called with criu's PID once it does.
  Dump(Container& container, const Program& program, std::optional<control::NotedFiles> notes,
       std::function<void(pid_t)> criu_runs)
      : container_(container), program_(program), notes_(notes), criu_runs_(std::move(criu_runs)) {}

  void begin();
  // Where the worker says what it has found; -1: it has, or there is none.
  [[nodiscard]] int found() const { return found_.get(); }
  void on_found();
  void on_child(pid_t pid, int status);

  // criu gets some time to leave the program clean; kill_if_due() ends it then.
  void abandon();
  [[nodiscard]] std::optional<Steady::time_point> kill_at() const { return kill_at_; }
  void kill_if_due();
  void program_ended();

  // Whether none of its processes is left.
  [[nodiscard]] bool over() const;
  [[nodiscard]] const std::string& failure() const { return failure_; }  // the first; "": none
  // Why the program may not run on, "": it may.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] bool found_files() const { return found_files_; }  // that the program has written in this container
  [[nodiscard]] std::uint64_t took_ns() const { return nanoseconds_since(begun_); }

 private:
  Result<void> try_to_begin();
  Result<pid_t> start_packing(int archive, int found, int notes_file);
  Result<void> start_criu(bool carries);
  void put_guards_on();
  void fail_with(const std::string& why);

  Container& container_;
  const Program program_;
  const std::optional<control::NotedFiles> notes_;
  const std::function<void(pid_t)> criu_runs_;
  const Steady::time_point begun_ = Steady::now();
  pid_t criu_ = 0, worker_ = 0;                     // 0: it doesn't run
  std::optional<transfer::CaptureClient> capture_;  // until the worker has found what is to be carried
  Fd found_;
  Guards guards_;  // off while criu runs
  UnkeptMemories unkept_;
  std::string failure_, damage_;
  std::optional<Steady::time_point> kill_at_;
  bool found_files_ = false;
};

}  // namespace bsp::init
