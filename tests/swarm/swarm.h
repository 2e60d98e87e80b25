// What one run of the simulation is made of, drawn from its seed.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bsp::simulation {

enum class Fault {
  kProgramDies,
  kForceDelete,  // a pod's object goes at once, its program runs on until its kubelet ends it
  kDelete,       // a pod is deleted by a user
  kNodeCut,      // from every network, its kubelet's too
  kSidecarRestarts,
  kSidecarDiskFull,
  kCopyDies,  // at its first instruction
  kCriuFails,
  kStorageFails,
  kOperatorDies,
  kOperatorSleeps,  // and wakes up late, without knowing it
  kOperatorCutOff,  // from pods
  kApiSilent,       // to one operator
  kWatchStalls,     // of one operator
  kUnreadable,      // another version has written something into the job
  kCancelled,       // a RankMigration is deleted
  kCordon,
  kKubeletHangs,   // and somebody deletes a pod of it by force
  kStoreRestored,  // from a backup, while processes went on
};
std::string_view to_string(Fault fault);

struct Swarm {
  explicit Swarm(std::uint64_t with_seed);

  std::uint64_t seed;
  std::uint32_t ranks = 2, seats = 1;  // of a pod at most
  std::uint32_t slots = 1;             // of a node
  std::uint32_t slow = 2, fast = 2;    // nodes of each Set
  int operators = 1;
  int releases = 1;  // that they belong to, in turn; each would manage the job
  std::uint64_t supersteps = 200;
  int superstep_low = 1, superstep_high = 4;  // ticks of each
  bool traps_sigterm = false;                 // and ends when its grace period is over
  bool checkpoints = false;
  bool old_sidecars = false;  // that know no tokens
  bool forgetful = false;     // sidecars that lose every order
  double late = 0;            // share of the messages that are late …
  int late_by = 1;            // … by so many ticks at most
  double again = 0;           // share of the messages of which a copy comes late, over a connection that was given up …
  int again_by = 600;         // … by so many ticks at most
  double loss = 0;            // share of the messages that are lost
  double write_loss = 0;      // share of the API server's answers to writes that are lost
  int watch_lag = 0;          // ticks
  double moves = 0;           // per tick
  double faults = 0;          // per tick, while there are faults
  int faults_until = 0;       // ticks
  std::set<Fault> kinds;

  // None of the faults may cost the job an attempt.
  [[nodiscard]] bool is_harmless() const;
  [[nodiscard]] std::string text() const;
};

}  // namespace bsp::simulation
