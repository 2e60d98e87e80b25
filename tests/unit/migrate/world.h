// The simulated cluster (tests/simulated_cluster) in milliseconds, with messages that take time, and an operator that steps
// one wave. Of the operator only the stored wave and epoch survive.
//
// Besides what the cluster checks, this must never happen: a computing rank's pod deleted, an epoch number used twice, a
// transition that is not in the drawing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/migrate/contact.h"
#include "operator/migrate/step.h"
#include "tests/simulated_cluster/cluster.h"

namespace bsp::migrate::sim {

enum class Victim {
  kNone,
  kProgram,
  kInit,
  kCriuDump,
  kCriuRestore,
  kSourceSidecar,
  kTargetSidecar,
  kStayingSidecar,
  kSourcePod,
  kTargetPod,
  kCopy,            // dies at its first instruction
  kTargetSeat,      // one container of it
  kStayingProgram,  // of a rank that does not move
  kStayingPod,
  kOperator,
  kOperatorAway,    // for a minute, then one whose clock is five minutes behind or ahead
  kApiServerPause,  // for 45 s nothing is stored, and the operator waits for that
  kClockForward,    // the operator's clock is set by an hour
  kClockBack,
  kStorageFails,  // of a checkpoint set
  kStorageHangs,
};
std::string_view to_string(Victim victim);

struct Scenario {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 4;
  std::uint32_t moves = 1;
  std::uint32_t seats = 1;  // ranks share pods, as many in each; so do those that move
  Victim victim = Victim::kNone;
  Phase phase = Phase::kPreparing;               // the fault strikes in this phase …
  int delay_ms = 0;                              // … this much later
  std::uint64_t program_supersteps = 1'000'000;  // then it finalizes
  Limits limits = {};
  bool never_migratable = false;           // every committed gate is postponed
  std::optional<Phase> cancelled_in = {};  // the wave is not wanted any more from this phase on
  bool operator_dies_with_it = false;      // the victim's end finds no operator for a moment
  bool checkpoint = false;                 // nobody moves (moves: 0), and each rank is dumped for a checkpoint set
  bool late_copies = false;   // each message arrives again, up to seconds later: on a connection that stalled
  bool old_sidecars = false;  // that know no tokens
  bool forgetful = false;     // sidecars forget their orders, as restarted ones do
};

struct Outcome {
  Wave wave;
  bool struck = false;                // the fault happened
  bool others_were_admitted = false;  // some rank but the moved ones was let into the wave's epoch
  double seconds_after_fault = 0;     // until the wave had ended
  int stores_while_stopped = 0;       // writes of the wave between the last stop and the commit, the commit's included
  std::size_t stored = 0;             // images of the set
  int asked_while_stopped = 0;        // send and restore between the two
  std::string violation;              // "": none
  std::string trace;
};

class World : private simulated::Cluster {
 public:
  explicit World(const Scenario& scenario);
  Outcome run();

 private:
  struct Pod : simulated::Pod {
    bool init_died = false;
  };
  struct Message {
    int at = 0;
    int operator_life = 0;
    Action action;
  };

  void tick();
  void remove_pods();
  void deliver();
  void execute(const Message& message);
  void create_target(const Action& action);
  void delete_pod(const std::string& name);
  void operate();
  void store(const WaveChange& change);
  void send(const std::vector<Action>& actions);
  void check_transitions(const Wave& next);
  void check_end(std::uint64_t superstep_at_end);
  View view();
  bool all_stopped();  // and nothing is committed yet

  // world_faults.cc
  void strike();
  void end_operator(int away_ms);
  void kill_program(Pod* pod);
  void kill_init(Pod* pod);
  void lose_pod(const std::string& name);

  Pod* pod(const Seat& seat);
  std::vector<Pod*> seats_of(const std::string& pod);
  [[nodiscard]] std::string source_of(std::uint32_t rank) const;  // its pod before the wave
  Pod* running(std::uint32_t rank);
  void for_each_pod(const std::function<void(simulated::Pod&)>& f) override;
  [[nodiscard]] std::uint64_t committed_epoch() const override { return epoch_.epoch; }
  // The operator's clock, as good as it is.
  Time time() const { return Time{} + std::chrono::hours(100) + std::chrono::milliseconds(tick_) + clock_is_off_; }
  SteadyTime steady() const { return SteadyTime{} + std::chrono::seconds(1000) + std::chrono::milliseconds(tick_); }

  Scenario s_;
  Wave wave_;
  wire::EpochPlan epoch_;
  std::map<Seat, Pod> pods_;
  int uids_ = 0;
  std::vector<Message> messages_;
  std::map<Seat, SidecarView> known_;  // to this operator
  std::map<std::tuple<ActionKind, Seat, std::uint64_t>, int> sent_at_;
  int operator_life_ = 0, operator_up_at_ = 0;
  Duration clock_is_off_{};
  Contact contact_;
  bool others_were_admitted_ = false;
  bool struck_ = false;
  int struck_at_ = 0, ended_at_ = -1, phase_at_ = 0;
  int stores_while_stopped_ = 0, asked_while_stopped_ = 0;
};

}  // namespace bsp::migrate::sim
