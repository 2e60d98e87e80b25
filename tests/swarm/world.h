// A simulated world: a store of objects, nodes that run pods, programs and sidecars in them (tests/simulated_cluster), a network
// that is late, and operators. Time is a number of ticks; one seed makes one run.
//
// It checks all the time that never two copies of a rank compute, that no epoch is opened but the committed one, and that a named
// set is complete; and in the end, when all faults are over, that the job ends, as long as nothing that it needs was taken from it
// without a restart.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "tests/simulated_cluster/cluster.h"
#include "tests/swarm/clock.h"
#include "tests/swarm/network.h"
#include "tests/swarm/sidecar.h"
#include "tests/swarm/store.h"
#include "tests/swarm/swarm.h"

namespace bsp::simulation {

class Faults;
class Operator;

inline constexpr std::chrono::milliseconds kTick{100};
inline constexpr int kTicksPerSecond = 10;
inline const std::string kNameSpace = "default", kJobName = "job";
inline const kube::Key kJobKey{kBspJob, kNameSpace, kJobName};

// What a node runs of a pod; it may go on after the pod's object is gone.
struct Running {
  std::string name, uid, node, address;
  std::vector<simulated::Pod> seats;
  struct End {
    int at = -1;
    int code = 0;
  };
  std::vector<End> ends;  // of its app containers
  std::vector<std::unique_ptr<bsp_ring>> rings;
  int up_at = 0;
  int kill_at = -1;     // its kubelet ends it then
  int removed_at = -1;  // and then its object, if it is being deleted
  int sidecar_down_until = 0;
  bool shown_up = false;
  bool lost = false;  // the store went back to when there was no such object
  std::size_t shown_ends = 0;
  net::SteadyTime fresh{};  // as bsp-init knows
  Sidecar::Saved saved;
  std::unique_ptr<Transport> network;
  std::unique_ptr<Sidecar> sidecar;

  [[nodiscard]] bool runs() const;  // a process of it
};

struct Outcome {
  std::string violation, trace;
  std::string phase;
  std::uint32_t attempts = 0, waves = 0, moved = 0, sets = 0;
  int ticks = 0;
  int faults = 0;
  std::uint64_t fingerprint = 0;  // of the trace
};

class World final : public simulated::Cluster {
 public:
  explicit World(const Swarm& swarm);
  ~World() override;
  Outcome run();

  // --- For operators, pods and faults -----------------------------------------------------------------------
  [[nodiscard]] int tick() const { return tick_; }
  Store& store() { return store_; }
  Mail& mail() { return mail_; }
  const Swarm& swarm() const { return swarm_; }
  int draw(int low, int high) { return random(low, high); }
  bool chance(double p) { return p > 0 && random(0, 999'999) < static_cast<int>(p * 1e6); }
  void say(const std::string& what) { note(what); }
  [[nodiscard]] const crds::BspJob& job() const { return job_; }
  [[nodiscard]] bool is_cut(const std::string& node) const;
  [[nodiscard]] bool kubelet_works(const std::string& node) const;
  // A request of `from` (a node; "": an operator) arrives at an address. `reply` is called once at most.
  void arrive(const std::string& from, const net::Peer& to, const std::string& verb, const nlohmann::json& fields,
              Mail::Reply reply);

 private:
  friend class Faults;

  // world.cc
  void create_job();
  void turn();
  void take_note(const Store::Change& change);
  bool is_another(const wire::EpochPlan& plan);
  void check_end();
  [[nodiscard]] bool is_over() const;
  void for_each_pod(const std::function<void(simulated::Pod&)>& f) override;
  [[nodiscard]] std::uint64_t committed_epoch() const override;
  [[nodiscard]] bool may_be_open(std::uint64_t epoch) const override;
  simulated::Answer answer_of(simulated::Pod& pod, std::string_view verb, const nlohmann::json& fields,
                              const std::shared_ptr<const wire::EpochPlan>& plan) override;
  void container_ended(simulated::Pod& pod, int code) override;
  bool can_compute(const simulated::Pod& pod) override;
  void answer_watchers();

  // nodes.cc
  void create_nodes();
  void run_nodes();
  void schedule(const kube::Key& key, const kube::Object& pod);
  void start(const kube::Object& pod);
  void start_sidecar(Running& running);
  void keep(Running& running);
  void show(Running& running, const kube::Object& pod);
  void set_ready(const std::string& node, bool ready);
  void restore_store(int tick);
  void find_running();
  [[nodiscard]] std::size_t slots_taken(const std::string& node) const;
  Running* of(const simulated::Pod& pod);
  Running* at(const std::string& address);
  [[nodiscard]] bool answers(const Running& running) const;

  struct Node {
    std::string set;
    int cut_until = 0;    // from all networks
    int hangs_until = 0;  // its kubelet
    int unready_at = 0;   // not 0: then it is shown as such
    bool ready = true;
  };
  struct Watcher {
    std::string uid;
    std::uint32_t local = 0;
    std::uint64_t version = 0;
    int until = 0;
    Mail::Reply reply;
  };

  const Swarm swarm_;
  Store store_;
  Mail mail_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Running> running_;  // by uid
  std::map<std::string, int> waits_;        // pods without a node: when the scheduler looks at them
  std::vector<Watcher> watchers_;
  std::vector<std::unique_ptr<Operator>> operators_;
  std::unique_ptr<Faults> faults_;
  crds::BspJob job_;  // as it was last readable
  bool removed_ = false;
  int addresses_ = 0;
  std::uint64_t highest_epoch_ = 0;
  std::map<std::uint64_t, wire::EpochPlan> committed_;  // all that ever were
  std::set<std::uint64_t> lost_epochs_;                 // of them those that a restored store didn't know
  int restored_at_ = 0;
  std::set<std::uint64_t> lost_sets_;  // that it names, and whose images have gone since
};

}  // namespace bsp::simulation
