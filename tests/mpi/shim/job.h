// An MPI job under the shim: N programs and N real sidecars on loopback; the test plays operator and bsp-init.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {

inline constexpr const char* kMany = "1000000";  // supersteps: more than any test needs

// For wait_for_gate(): no limit on postponements.
inline constexpr std::uint32_t kForever = ~std::uint32_t{0};

class Job {
 public:
  struct Options {
    std::uint32_t ranks = 2;
    std::uint32_t seats = 1;  // ranks of a pod
    std::string program;      // in BSP_BINARY_DIR/bin
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
    std::vector<std::string> wrapper{};  // a command that runs the program
    std::string preload = BSP_BINARY_DIR "/bin/libbspmpi.so";
    // The program has some number of supersteps, which end with MPI_Barrier: it begins those that the test asks for, and all in wait().
    bool paced = false;
    std::chrono::milliseconds first_epoch_after{0};  // the programs wait for it, as for a pod that isn't there yet
  };
  explicit Job(Options options);
  ~Job();

  // The outcome of a gate.
  enum class Gate { kStopped, kPostponed, kEnded, kOpen };  // kOpen: none yet
  // Arms and commits a gate a little ahead of every rank. Returns when all have stopped, when some rank has postponed
  // the gate at `edges` edges, or when a program has ended.
  Gate gate(std::uint32_t edges = 5);
  // Prepares and opens the next epoch and continues the programs.
  void next_epoch();
  // Before a gate: in the next epoch these ranks will be in that pod (Cluster::add_pod). As their processes stay, they find its
  // directory where theirs was.
  void prepare_move(const std::vector<std::uint32_t>& ranks, std::uint32_t pod);
  // gate() + next_epoch(); false if a program ended first.
  bool turn();

  // The parts of gate(): arms and commits, returns the gate's superstep (0: a program has ended) …
  std::uint64_t commit(std::uint64_t ahead = 3);
  // … and waits for the outcome.
  Gate wait_for_gate(std::uint32_t edges);
  Gate poll_gate(std::uint32_t edges);
  // After cancelGate: waits until all have stopped, or no sidecar has a gate any more (kPostponed).
  Gate settle_gate();
  // Drops a committed gate by the vote of one rank, and waits until every sidecar has cleared it.
  void drop_gate(std::uint32_t voter);
  // SIGKILLs the sidecar of a rank's pod and restarts it.
  void kill_sidecar(std::uint32_t rank);
  void start_sidecar(std::uint32_t rank);

  // A rank's RankStatus.
  [[nodiscard]] nlohmann::json status(std::uint32_t rank);
  // Supersteps that the rank has completed.
  [[nodiscard]] std::uint64_t completed(std::uint32_t rank = 0);
  // Waits until every rank has completed superstep `s`; false if one has ended.
  bool reach(std::uint64_t s);
  // Runs `epochs` epochs with a few supersteps in each.
  void go_through(int epochs, std::uint64_t supersteps = 2);
  // The reasons of all ranks that postponed the gate, one per line.
  [[nodiscard]] std::string reasons();

  // Exit status of each program after at most `limit`, -1 if it still runs; and its last line of output.
  int wait(std::uint32_t rank, std::chrono::milliseconds limit = std::chrono::seconds(60));
  std::string last_line(std::uint32_t rank);
  [[nodiscard]] std::string stderr_of(std::uint32_t rank) const;
  [[nodiscard]] std::string refusal_of(std::uint32_t rank) const;  // crds/refusal.h
  // All programs have exited with status 0 and printed "ok …".
  void expect_ok();
  // The same, after asking rank 0 to end (check.h), so that a program's duration doesn't depend on the machine.
  void finish_ok();

  Cluster cluster;
  std::vector<Process> programs;
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

 private:
  void open(std::uint64_t epoch);
  bool all_stopped();  // also reports stops to the sidecars
  [[nodiscard]] std::string pace() const { return cluster.home(0) + ".pace"; }
  void allow(std::uint64_t supersteps);  // … of a paced program, in all; never fewer than before

  Options options_;
  std::uint64_t allowed_ = 0;
  std::vector<std::unique_ptr<FakeInit>> inits_;
  std::vector<bool> stopped_;
  std::vector<int> exited_;  // waitpid status, -1 while it runs
  std::uint64_t epoch_ = 0;
};

// The program, as shim_blocked, holds a thing and runs on unharmed, while the gate is postponed for this reason. The gate
// can be dropped; a new one closes as soon as the program has released the thing, upon SIGUSR1.
void expect_postponed_until_released(const std::string& program, const std::string& thing, const std::string& reason);

}  // namespace bsp::test
