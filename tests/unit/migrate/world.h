// A simulated cluster for the migration machine: ranks in lock-step, pods, sidecars, messages that take
// time, and an operator of which only the stored wave and epoch survive. One seed makes one run.
//
// It checks while it runs what must never happen: two computing copies of a rank, an epoch opened that
// is not the committed one, a source removed before its target computes.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "operator/migrate/contact.h"
#include "operator/migrate/step.h"

namespace bsp::migrate::sim {

enum class Victim {
  kNobody,
  kProgram,
  kInit,
  kCriuDump,
  kCriuRestore,
  kSourceSidecar,
  kTargetSidecar,
  kStayingSidecar,
  kSourcePod,
  kTargetPod,
  kStayingProgram,  // of a rank that does not move
  kStayingPod,
  kOperator,
  kOperatorAway,    // for a minute, then one whose clock is five minutes behind or ahead
  kApiServerPause,  // for 45 s nothing is stored, and the operator waits for that
  kClockForward,    // the operator's clock is set by an hour
  kClockBack,
};
std::string_view to_string(Victim victim);

struct Scenario {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 4;
  std::uint32_t moves = 1;
  Victim victim = Victim::kNobody;
  Phase phase = Phase::kPreparing;               // the fault strikes in this phase …
  int delay_ms = 0;                              // … this much later
  std::uint64_t program_supersteps = 1'000'000;  // then it finalizes
  Limits limits = {};
  bool never_migratable = false;           // every committed gate is postponed
  std::optional<Phase> cancelled_in = {};  // the wave is not wanted any more from this phase on
  bool operator_dies_with_it = false;      // the victim's end finds no operator for a moment
  bool forgetful = false;                  // sidecars forget what they shall do by themselves, as restarted ones do
};

struct Outcome {
  Wave wave;
  bool struck = false;                // the fault happened
  bool others_were_admitted = false;  // some rank but the moved ones was let into the wave's epoch
  double seconds_after_fault = 0;     // until the wave had ended
  int stores_while_stopped = 0;       // writes of the wave between the last stop and the commit, the commit's included
  int asked_while_stopped = 0;        // send and restore between the two
  std::string violation;              // "": none
  std::string trace;
};

class World {
 public:
  explicit World(const Scenario& scenario);
  Outcome run();

 private:
  enum class Process { kNone, kRunning, kStopped, kRestored, kDead, kFinished };
  struct Pod {
    std::string name, uid;
    std::uint32_t rank = 0;
    bool exists = true, target = false;
    int up_at = 0;  // ms from which the sidecar answers
    bool init = true;
    Process process = Process::kNone;
    std::map<std::uint64_t, std::string> prepared;  // epoch -> pod that runs this rank
    std::uint64_t highest_prepared = 0;             // a restarted sidecar knows it, too
    std::uint64_t opening = 0;
    int stop_at = -1, run_at = -1;  // ms of a transition under way
    int transfer_at = -1;
    std::string order;      // migration to be sent from the committed gate
    bool restores = false;  // what it receives, by itself
    bool killed_criu = false;
    int reaped_at = -1;
    // What the tmpfs keeps over a restart of the sidecar.
    wire::RankStatus status;
    std::uint64_t gate_dropped = 0;
    bool dropping = false;
  };
  struct Message {
    int at = 0;
    int operator_life = 0;
    Action action;
    wire::EpochPlan plan;  // for prepareEpoch
    std::string migration, to_pod;
  };
  struct Known {  // what one operator life has heard of one pod
    std::optional<wire::RankStatus> status;
    SteadyTime phase_since{}, unreachable_since{};
    std::optional<ArmAnswer> armed;
    std::set<std::pair<ActionKind, std::uint64_t>> done;
  };

  void tick();
  void programs();
  void pods();
  void deliver();
  void execute(const Message& message);
  void operate();
  void strike();
  void end_operator(int away_ms);
  void check_invariants();
  void violate(const std::string& what);
  void note(const std::string& what);
  Pod* pod(const std::string& name);
  Pod* running(std::uint32_t rank);
  bool all_stopped();  // and nothing is committed yet
  int random(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  // The operator's clock, as good as it is.
  Time time() const { return Time{} + std::chrono::hours(100) + std::chrono::milliseconds(now_) + clock_is_off_; }
  SteadyTime steady() const { return SteadyTime{} + std::chrono::seconds(1000) + std::chrono::milliseconds(now_); }
  std::uint64_t stamp() const {
    return static_cast<std::uint64_t>((time() - clock_is_off_).time_since_epoch().count());
  }  // as sidecars write it
  View view();

  Scenario s_;
  std::mt19937_64 random_;
  int now_ = 0;  // ms
  Wave wave_;
  wire::EpochPlan epoch_;
  std::map<std::string, Pod> pods_;
  std::vector<Message> messages_;
  std::map<std::string, Known> known_;
  std::map<std::tuple<ActionKind, std::string, std::uint64_t>, int> sent_at_;
  int operator_life_ = 0, operator_up_at_ = 0;
  Duration clock_is_off_{};
  Contact contact_;
  bool others_were_admitted_ = false;
  std::vector<std::uint64_t> last_epoch_opened_;  // per rank
  int next_edge_at_ = 0;
  std::uint64_t superstep_ = 0;
  bool struck_ = false;
  int struck_at_ = 0, ended_at_ = -1, phase_at_ = 0;
  int stores_while_stopped_ = 0, asked_while_stopped_ = 0;
  std::string violation_, trace_;
};

}  // namespace bsp::migrate::sim
