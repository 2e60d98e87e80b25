// The simulated cluster (tests/simulated_cluster) with an object store, nodes that run pods, and a shell that applies the
// steps of the reconcile kernels. Of the operator only what it stored survives, and that goes through JSON each time.
//
// Besides what the cluster checks, this must never happen: two pods in one slot, a computing rank's pod deleted under a
// running job, an epoch number used twice, status.ranks and status.epoch naming different pods.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/job_clocks.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/kernel/waves.h"
#include "tests/simulated_cluster/cluster.h"

namespace bsp::reconcile {
// Of a scheduler that has nothing to say.
inline Advice unadvised(const Observed& o) { return {.status = o.job.status}; }
inline const crds::BspJobStatus& status_of(const Step& step) {
  return step.change() ? step.change()->status : step.work().progress;
}
inline const Notices& notices_of(const Step& step) {
  return step.change() ? step.change()->notices : step.work().notices;
}
}  // namespace bsp::reconcile

namespace bsp::reconcile::sim {

inline constexpr Duration kTick = std::chrono::milliseconds(200);

using simulated::Process;

// A pod, and seat 0 of it.
struct Pod : simulated::Pod {
  std::vector<simulated::Pod> beside;  // its further seats
  struct End {
    int at = -1;  // tick from which the node reports it
    int code = 0;
  };
  std::vector<End> ends_beside;  // of their app containers
  // All of it.
  template <class F>
  void for_each_seat(F f) {
    f(static_cast<simulated::Pod&>(*this));
    for (simulated::Pod& seat : beside) f(seat);
  }
  [[nodiscard]] bool one_computes() const {
    return computes() || std::ranges::any_of(beside, &simulated::Pod::computes);
  }
  nlohmann::json object;  // what the operator created, as far as pod_facts() reads it
  std::string node;
  int app_ended_at = -1;   // tick from which the node reports the app container's end
  int exit_code = 0;       // as a container runtime says it
  bool resumes = false;    // waits for its rank's image of a checkpoint set
  bool helper = false;     // has a second container, which never ends
  nlohmann::json stuck;    // {reason, message} of a container that can't be started; null: none
  nlohmann::json again;    // the same of its sidecar, which is created again beside the program; null: it is not
  bool lost = false;       // its node is: the object stays once it is deleted
  int vanished_until = 0;  // not 0: its object is gone, and its program runs on until this tick
  bool unknown = false;    // vanished, never seen by this operator nor named in the status: its program waits in vain
  nlohmann::json disruption;  // {reason, message} of the one who deletes it; null: nobody said
  nlohmann::json evicted;     // {reason, message} with which the node ended the pod; null: it did not
  PodFacts facts;             // as of the object `facts_of`
  std::string facts_of;
};

// How many cases RapidCheck tries, unless RC_PARAMS says it: one takes long in a debug build.
void try_cases(int count);

class World;
std::vector<std::string> pods_in(const wire::EpochPlan& epoch);  // their uids

// What jobs on the same nodes share: the object with the reservations, and which job holds which slot.
struct SharedNodes {
  Reservations reservations{.of_job = {}, .version = "1"};
  std::vector<World*> worlds;
};

struct Options {
  std::string name = "job";
  std::uint32_t ranks = 2;
  std::uint32_t slow = 2, fast = 2;  // nodes of each Set
  std::uint32_t slots = 1;           // of each node
  std::uint32_t ranks_per_pod = 1;
  std::uint64_t supersteps = 1'000'000;  // then every rank exits with 0
  SharedNodes* cluster = nullptr;        // that this job shares with others, which have other names
  std::uint32_t seed = 0;                // 0: messages arrive at once; else some are late, some are lost
};

class World : public simulated::Cluster {
 public:
  explicit World(const Options& options = {});

  void tick();
  // True as soon as `wanted` holds; false after `ticks` ticks, or a violation.
  template <class F>
  bool run_until(F wanted, int ticks = 600) {
    for (int i = 0; i < ticks && violation.empty(); ++i) {
      if (wanted()) return true;
      tick();
    }
    return violation.empty() && wanted();
  }
  bool run_until(crds::JobPhase phase, int ticks = 600) {
    return run_until([&] { return job.status.phase == phase; }, ticks);
  }
  // Of the wave that is stored; kPending: none.
  [[nodiscard]] migrate::Phase wave_phase() const;
  bool run_until(migrate::Phase phase, int ticks = 600) {
    return run_until([&] { return wave_phase() == phase; }, ticks);
  }

  // What the kernels would be given now.
  Observed observe();
  Step reconcile() {
    const Observed o = observe();
    return reconcile_job(o, {.call = decided, .status = o.job.status}, limits, job_limits);
  }
  // "" if reconciling the world as it is asks for nothing and changes nothing; else what it wants.
  std::string unrest();

  // --- What happens to it ---
  void lose_pod(const std::string& name);  // the object is gone at once, and so is the program, as its sidecar has said
  void vanish(const std::string& name, int runs_on);  // only the object is gone, as after a deletion by force
  void delete_pod(const std::string& name);           // by another than the operator
  void evict(const std::string& pod);                 // its node ends it
  void lose_node(const std::string& node);            // for good, with what runs there
  void silence(const std::string& pod, int ticks);
  void cut_off(const std::string& pod, int ticks);
  void silence_all(int ticks);  // the operator is cut off
  void restart_sidecar(const std::string& pod);
  void end_container(const Seat& seat);  // is killed, whatever is in it
  void restart_operator(int down_for = 1);
  void pause_api(int ticks) { operator_up_at_ = tick_ + ticks; }  // the operator waits for it
  void migrate_by_hand(const std::string& name, std::uint32_t rank, const std::string& set,
                       const std::string& to_node = "");
  void delete_migration(const std::string& name) { migrations.erase(name); }
  void decide(std::vector<MoveRequest> moves);  // what the scheduler would hand over
  void cordon(const std::string& node, bool on = true);
  void place_pods();     // those without a node, on free ones
  void remove_status();  // of the job, by another than the operator
  void remove_job() { job.metadata.deletion_timestamp = now; }

  // --- What there is ---
  Pod* pod_of(std::uint32_t rank);                   // by status.ranks
  simulated::Pod* seat_of_rank(std::uint32_t rank);  // the same
  Pod* find(const std::string& pod);
  simulated::Pod* find(const Seat& seat);
  [[nodiscard]] const crds::RankMigration& migration(const std::string& name) const { return migrations.at(name); }
  [[nodiscard]] bool has_event(const std::string& reason) const;  // an event with it
  [[nodiscard]] bool all_ended() const;                           // no process is left anywhere

  Time now{std::chrono::seconds(1'000'000)};  // the operator's clock; tests may set it
  SteadyTime steady{std::chrono::seconds(5'000)};
  crds::BspJob job;
  std::vector<observe::NodeFacts> nodes;
  std::map<std::string, Pod> pods;
  std::map<std::string, crds::RankMigration> migrations;
  std::vector<Event> events;
  std::vector<PodRequest> created;  // every pod asked for
  std::optional<Decided> decided;
  std::map<std::string, std::string> node_troubles, cordons;  // cordons: by node, why
  std::optional<Hearing> everywhere;                          // instead of what this job hears
  MoveCaps caps;
  bool capacity_may_come = false;
  std::optional<Queued> queued;                     // the test is Kueue
  std::vector<nlohmann::json> pod_groups;           // that exist; none is made twice
  PodGroupFacts pod_group;                          // what the operator knows
  std::optional<Error> no_pod_groups;               // why none can be created
  std::map<std::string, CpuFeatures> cpus;          // by node or Set; others': not known
  std::string runtime_image{names::kRuntimeImage};  // the operator's present one
  std::map<std::string, std::string> image_ids;     // that nodes report, by image
  std::map<std::string, std::string> runtimes;      // build id of the libbspmpi.so in it, by image
  bool no_room = false;                             // pods that are created find no node until place_pods()
  // Pods go where kube-scheduler would put them: to the first node with room that their own spec admits. They tolerate
  // every taint, so it may be a cordoned one.
  bool scheduled = false;
  std::function<bool(const PodRequest&)> finds_no_node = {};  // of these, none; not set: each does
  // Why the API server doesn't create them; not set: it creates all.
  std::function<std::optional<Error>(const PodRequest&)> refuses = {};
  std::function<void(Observed&)> also_seen = {};    // what nodes and API server say besides
  std::function<void(const Work&)> also_done = {};  // of what the operator does
  bool removed = false;                             // the job object is gone
  // The pod that removes the deleted job's sets.
  struct Remover {
    bool deleting = false, failed = false, done = false;
    std::string said = {};
  };
  std::optional<Remover> remover;
  int removers = 0;  // made so far
  bool can_remove_sets = false, storage_hangs = false;
  std::string storage_refuses = {};  // what it answers to the remover; "": it lets the sets go
  std::optional<Error> no_remover;   // why it can't be created
  std::string sets_used_by = {};
  bool storage_is_damaged = false;  // by the test, so that a named set may be incomplete
  int conflicts = 0;                // so many of the next writes of the status fail
  int die_after_stores = -1;        // the operator dies right after so many more writes
  int slow_start = 1;               // ticks until a new pod is up
  migrate::Limits limits;
  JobLimits job_limits;
  Seat shown_logs_of;
  bool shown_logs_complete = false;  // the container had ended by then
  bool node_reports_ends = true;
  std::size_t largest_object = 0;  // bytes of the job, of all that was stored

 private:
  struct Message {
    int at = 0;
    int life = 0;
    migrate::Action action;
  };
  void for_each_pod(const std::function<void(simulated::Pod&)>& f) override;
  [[nodiscard]] std::uint64_t committed_epoch() const override;
  void container_ended(simulated::Pod& pod, int code) override;
  bool can_compute(const simulated::Pod& seat) override;
  void start_pods();
  void run_remover();
  void work_on_sets(const Work& work);
  void operate();
  void keep(const Notices& notices);
  void do_work(const Work& work);
  void deliver(const Message& message);
  migrate::Action::Fields fields_of(const migrate::Action& action);
  bool store(const crds::BspJobStatus& status);
  [[nodiscard]] std::string key() const { return "default/" + job.metadata.name; }
  bool reserve(const StatusChange& change);
  [[nodiscard]] StartQueue queue() const;
  [[nodiscard]] std::string node_for(const nlohmann::json& pod) const;  // "": none
  void write(crds::RankMigration migration);
  void check_invariants();
  nlohmann::json pod_object(const Pod& pod) const;
  const PodFacts& facts_of(Pod& pod) const;
  bool is_stored(Pod& pod) const;  // in the status

  Options options_;
  int operator_up_at_ = 0, life_ = 0;
  std::string seen_;  // version of the reservations that was decided on
  std::map<Seat, SidecarFacts> known_;
  std::map<std::string, CpuFeatures> known_cpus_;  // by node, as sidecars have said
  JobClocks clocks_;
  VanishedPods vanished_;
  std::map<std::string, Error> refused_;
  std::set<std::string> observed_;  // uids of the pods that this operator has seen
  std::set<std::string> removed_;   // pods whose end was reported before their objects were removed
  std::uint64_t newest_ = 0;
  SteadyTime progress_{};
  std::uint32_t known_wave_ = 0;
  std::map<std::string, crds::RankMigration> unwritten_;  // until the operator carries something out
  std::vector<Message> messages_;
  std::optional<Error> remover_refused_;
  migrate::Action::Plan plan_;  // encoded last: it is large, and the same for every pod
  std::optional<wire::Token> plan_token_;
  migrate::Action::Fields plan_fields_;
  std::uint64_t highest_epoch_ = 0;
  std::vector<std::string> removed_members_;  // pods of the epoch that remove_status() removed
  int uids_ = 0;
};

}  // namespace bsp::reconcile::sim
