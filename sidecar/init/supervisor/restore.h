// One restore of a program that was dumped in another pod, or for a checkpoint set: its files first, then its process, which comes back
// stopped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/memory/guards.h"
#include "sidecar/init/memory/unkept_memory.h"
#include "sidecar/init/supervisor/container.h"

namespace bsp::init {

class Restore {
 public:
  // The image is in container.images()/migration. ignores_files: the notes in it are not compared (spec.checkpoint.sharedFiles).
  Restore(Container& container, const std::string& migration, bool ignores_files)
      : container_(container), images_(container.images() + "/" + migration), ignores_files_(ignores_files) {}

  Result<void> begin();
  // Once it is over: the program, stopped, or why there is none. What is left of a failed one must be killed.
  std::optional<Result<Program>> on_child(pid_t pid, int status);
  void abandon();

  // Once restored: whether files on shared volumes are ahead of the process. Every rank must have accepted the set before one cuts them
  // off.
  [[nodiscard]] bool ahead() const { return found_.ahead; }
  Result<void> cut();  // starts it, if it isn't under way
  [[nodiscard]] bool cuts(pid_t child) const { return found_.ahead && worker_ > 0 && child == worker_; }
  Result<void> on_cut(int status);

  // Of an error of the above.
  [[nodiscard]] std::optional<control::RestoreCause> cause_of(const Error& error) const;

  // What people should know of the files, "": nothing.
  [[nodiscard]] const std::string& note() const { return note_; }
  [[nodiscard]] std::uint64_t took_ns() const { return nanoseconds_since(begun_); }

 private:
  Result<void> start_criu();
  Result<int> compare(Grown grown) const;
  [[nodiscard]] std::string note_of_worker() const;
  Result<void> on_unpacked(int status);
  [[nodiscard]] Result<Program> restored();

  Container& container_;
  const std::string images_;
  const bool ignores_files_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  pid_t criu_ = 0, worker_ = 0;  // 0: it doesn't run
  Program program_;              // as the source's bsp-init has described it
  User user_;                    // its user, with the groups that it had there
  std::vector<InheritedPipe> pipes_;
  struct Memory {
    Guards guards;
    UnkeptMemories unkept;
  };
  Memory memory_;
  std::string note_;
  std::string notes_;  // of shared files, encoded; "": they are not compared
  struct Found {
    bool ahead = false;         // files on shared volumes
    bool blames_image = false;  // criu or the process itself has failed, and nothing has ended them
  };
  Found found_;
};

}  // namespace bsp::init
