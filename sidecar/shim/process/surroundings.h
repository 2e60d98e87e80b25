// What MPI depends on whenever a session opens, and what the program may have changed since MPI_Init: its environment, its file mode mask,
// its limits, the directory for temporary files, the first three descriptors. While an object exists, they are as MPI needs them; then as
// the program has them.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sidecar/shim/process/descriptors.h"

namespace bsp::shim {

class Surroundings {
 public:
  // In MPI_Init: what MPI is told today, it is told in each epoch.
  static void note();
  // From now on this is what MPI is told.
  static void replace(const std::string& name, const std::string& value);

  // `of_epoch`: the variables of this epoch alone. They remain in the first one, and where the program has them.
  explicit Surroundings(const std::map<std::string, std::string>& of_epoch);
  ~Surroundings();
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

 private:
  void set(const std::string& name, const std::string& value);

  const StandardHeld held_;
  std::set<std::string> names_of_program_;                        // of all variables
  std::map<std::string, std::optional<std::string>> of_program_;  // those that have another value now
  std::optional<mode_t> mask_;
  std::map<int, rlimit> limits_;  // of the program, by resource: those that are raised now
};

// The directory in which MPI may keep its files: what TMPDIR, TEMP or TMP named in MPI_Init, /tmp, /dev/shm or the run directory. Exits
// with a message if the program may write to none.
std::string directory_for_mpi();

// At a gate: "", or why MPI couldn't start a thread, without which no epoch opens.
std::string thread_blocker();

// At a gate: "", or which limit that can't be raised again would keep MPI from making the files in which ranks share memory.
std::string limit_blocker();

// At a gate: "", or why the process couldn't begin again in its working directory, which criu opens and enters as the program's user.
std::string directory_blocker();

// At a gate: "", or what the kernel keeps for the process, which criu doesn't carry and nobody sees from outside (kernel_state.cc): a key
// in the keyrings of the process, its session or this thread (add_key); a Landlock ruleset on this thread, which the restored process
// would be free of.
std::string key_blocker();
std::string landlock_blocker();

// What would end the process, or keep others from looking at it, between its stop and its next epoch. As the program has set it in
// this thread, it is set again afterwards.
class Untouchable {
 public:
  Untouchable();
  ~Untouchable();
  Untouchable(const Untouchable&) = delete;
  Untouchable& operator=(const Untouchable&) = delete;

 private:
  int death_signal_ = 0;  // by PR_SET_PDEATHSIG: the parent of a restored process is one of criu, which ends
  int dumpable_ = 1;      // by PR_SET_DUMPABLE: without it nobody may read /proc/PID
};

}  // namespace bsp::shim
