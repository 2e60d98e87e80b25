// What one reconcile of one job reads, and what it answers: plain values between the pure kernels and the shell. The
// shell fills Observed from the API and the sidecars, and applies the Step.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "crds/seat.h"
#include "operator/migrate/step.h"
#include "operator/observe/cpu_facts.h"
#include "operator/observe/snapshot.h"
#include "operator/reconcile/capacity/reservations.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/start/kueue.h"
#include "operator/reconcile/kernel/start/start_queue.h"
#include "operator/step.h"

namespace bsp::reconcile {

// What other ranks' sidecars answered when asked whether they hear one that the operator doesn't (verb `hears`).
struct Vouchers {
  SteadyTime heard{};         // when one of them last did
  SteadyTime denied_since{};  // since when each that answered did not; SteadyTime{}: none has answered, or one did
  SteadyTime denied{};        // the last of these answers
  std::string by;             // who gave the last answer: "rank 0"
  void note(bool hears, const std::string& who, SteadyTime now);
};

// How many of the sidecars that should answer the operator do, and how many don't.
struct Hearing {
  std::size_t heard = 0;
  std::size_t silent = 0;
  bool operator==(const Hearing&) const = default;
};

// What a wave needs to know of a sidecar, and what only the job does.
struct SidecarFacts : migrate::SidecarView {
  Vouchers vouchers;     // what other ranks' sidecars said of it while it did not answer
  double throttled = 0;  // fraction of the last seconds for which a CPU limit held the app container back
  // The last of its messages that was rejected, wholly or in part, and why; "": none was.
  std::string rejected;
  SteadyTime rejected_at{}, rejected_logged{};
  bool untrusted = false;  // it answers, but it or the operator doesn't accept the other's certificate
};

// All ranks complete a superstep together, so none is millions of them ahead of others that were heard lately. A rank that
// claims to be counts as being where they are, because gates and progress go by the rank that is furthest ahead. Far more
// than a rank can complete while the others are not heard.
inline constexpr std::uint64_t kFarAhead = 1 << 24;
void doubt_claims(std::map<Seat, SidecarFacts>& sidecars, SteadyTime now);

// The app container of a seat, as the node reports it. Where the node ended the pod as a whole or can't start one of its
// other containers, each app container that has not ended has ended or can't start for that reason.
struct AppFacts {
  std::uint32_t rank = 0;  // that its pod was made for
  bool running = false;
  bool ended = false;
  int exit_code = 0;          // 128 + signal, as bsp-init and container runtimes report it
  std::string message;        // why it could not be started, in the node's words
  bool finalized = false;     // the program had returned from MPI_Finalize, whatever its exit code
  bool cannot_start = false;  // image missing, command refused by the engine: waiting won't help
  bool pod_ended = false;     // the node ended the pod as a whole (evicted, past its deadline, unstartable)
  std::string reason;         // ErrImagePull, ContainerCannotRun, Evicted, OOMKilled, …
  // Of its CPU, thousandths of a core: as its pod asks for it, 0 for none; and the limit that its node has given it, 0 if it doesn't say.
  std::int64_t cpu_limit = 0, cpu_request = 0, cpu_given = 0;
  bool keeps_cpu = false;  // it would be restarted with more, or the pod as a whole says what it has
  bool operator==(const AppFacts&) const = default;
};

// What a node says to a pod's containers that are to have more or less CPU.
enum class Resizing { kNo, kInProgress, kDeferred, kInfeasible };

// A pod and its containers, as the node (the kubelet or the Podman node) reports them.
struct PodFacts {
  std::string uid;
  std::string node;
  std::string set;
  std::uint32_t generation = 0, attempt = 0;
  Time created{};
  bool deleting = false;
  bool lost = false;                 // deleting, but its node does not answer: nothing reports when its containers end
  bool vanished = false;             // its object is gone, and nobody has said that its program has ended (lost_pods.h)
  bool grace_over = false;           // vanished, and a kubelet that answers has ended it by now
  bool abandoned = false;            // lost or vanished, and its program has certainly ended (lost_pods.h)
  std::uint64_t grace_seconds = 30;  // that its kubelet gives its containers to end
  std::string address;               // ip:port of the sidecar; "": no IP yet
  std::vector<AppFacts> apps{1};     // by seat
  bool others_run = false;           // the job's own containers beside apps and sidecar
  std::string disruption;            // who removes it and why, as Kubernetes says; "": nobody does, or it isn't said
  std::string unscheduled;           // why the scheduler has found no node; "": it has, or doesn't say
  std::string start_delay;           // why a container isn't started yet, where waiting may help; "": no such reason
  bool delayed_by_image = false;     // which that container waits for
  std::string pod_group;             // that it names and its rank's next pods join (gang.h)
  std::string move_to;               // where a person wants its rank to go (kAnnotationMoveTo)
  std::string runtime_image;         // of its sidecar, by digest once its node says it (image_by_digest in pods.h)
  std::string image;                 // of the app containers, as the node resolved it; "": not known yet
  bool sidecar_out_of_memory = false;  // it was killed for that, now or the last time it ended
  std::string account, mounts;         // of the program (checkpoints/skew.h)
  Resizing resizing = Resizing::kNo;
  std::string resize_message;  // why not, in the node's words
  bool operator==(const PodFacts&) const = default;

  // Of a seat that the pod doesn't have: nothing is known.
  [[nodiscard]] const AppFacts& app(std::uint32_t local = 0) const;
  [[nodiscard]] bool all_apps(bool AppFacts::* has) const { return std::ranges::all_of(apps, has); }
};
PodFacts pod_facts(const nlohmann::json& pod);
struct Observed;
// Of this attempt's pods, for its further ones: as stored, else as its first pods say. "": there is none yet.
std::string runtime_image_of(const Observed& o);
// Its price is still that of the whole node.
observe::NodeFacts node_facts(const nlohmann::json& node, const std::string& set_label);

// A move that a person or the cost model asks for.
struct MoveRequest {
  std::string migration;
  std::uint32_t rank = 0;
  std::string set;
  std::string node;                   // "": any free slot of the Set
  double predicted_gain_seconds = 0;  // of the cost model
  bool away = false;                  // to any other node: of its own Set if it can be, else of another
};

// What a rescheduling call leaves in the status, and the moves it wants.
struct Decided {
  crds::Decision decision;
  std::vector<MoveRequest> moves;             // empty unless the mode is Migrate
  std::vector<crds::ResizeEntry> resizes;     // instead of all of them; likewise
  double predicted_gain_seconds = 0;          // of the whole plan, over a window
  std::vector<std::string> text;              // the explanation, line by line
  std::shared_ptr<const std::string> record;  // the call as operator/record writes it; null: not recorded
};

// What a wave has really gained, once it is known.
struct RealisedGain {
  std::string migration;
  double seconds = 0;     // of this rank's own supersteps, over as many as the window had, pause deducted
  double error = 0;       // of that, two standard errors, s
  bool is_noise = false;  // it is no more than that, but for the pause
  double superstep_before = 0, superstep_after = 0;  // s, of the job
  bool superstep_is_noise = false;     // these differ by no more than noise, and what ranks that stayed saw
  std::optional<double> control = {};  // times as long as before that ranks computed which stayed; none: nobody did
};

// What the scheduler concludes from what was observed.
struct Advice {
  std::optional<Decided> call = {};      // to be stored; the same again until it is
  crds::BspJobStatus status = {};        // the job's own, with what the scheduler goes on with and what it has measured
  std::vector<RealisedGain> gains = {};  // that have just become known
  std::vector<std::string> records = {};  // of calls that moved no rank and are not reported
  std::vector<std::string> text = {};     // the explanations of all new calls
};

// The job from which another begins (spec.restoreFrom), with the sets that this one may use.
struct SourceJob {
  std::string uid;
  std::uint64_t epochs_used = 0;
  std::vector<crds::StoredSet> sets;
  std::string grant;    // by which this job may use them
  std::string trouble;  // why it can't be used; the rest is empty then
};

// The pod that removes the checkpoint sets of a deleted job (checkpoints/reclaim.h).
struct RemoverFacts {
  bool made = false;  // there is one
  std::string uid = {};
  bool deleting = false;
  bool done = false;       // all sets are removed
  bool failed = false;     // its node has ended it
  std::string said = {};   // what the storage has answered, or how its last try ended
  std::string waits = {};  // why it doesn't start
};

struct Observed {
  crds::BspJob job;
  std::optional<SourceJob> source;              // of a job with spec.restoreFrom that has no status yet
  std::vector<observe::NodeFacts> nodes;        // by name
  std::map<std::string, PodFacts> pods;         // every pod of the job; one that is not in it has ended for certain
  std::vector<crds::RankMigration> migrations;  // every one of the job, by name
  std::map<Seat, SidecarFacts> sidecars;        // what they say of each seat
  std::map<std::string, Error> not_created;     // by pod: the answer to the last attempt to create it
  std::set<std::string> being_made;             // pods that are being created; some may be in `pods` by now
  std::map<std::string, std::int64_t>
      free_cpu;                              // by node with ranks, where it may be given to them: thousandths of a core
  std::map<std::string, Error> not_resized;  // by pod: the answer to the last attempt to resize it
  std::set<std::string> being_resized;       // pods for which the API server is being asked
  std::map<std::string, std::string> node_troubles;  // by node: "is not ready", "is gone"
  std::map<std::string, std::string> leaving;  // by node with ranks of the job: why they have to leave it (resources.h)
  // Those made by hand before the job was, which move nothing (is_older_than()).
  std::vector<crds::RankMigration> older_migrations;
  MoveCaps caps;
  Reservations reservations;       // of all jobs
  MovesElsewhere elsewhere;        // of all other jobs
  StartQueue queue;                // of a job that is to start
  std::optional<Queued> queued;    // not set: Kueue has no say in this job
  PodGroupFacts pod_group;         // of a job whose start the cluster's scheduler makes all or nothing
  bool capacity_may_come = false;  // in a cluster: other jobs end, an autoscaler adds nodes
  bool images_unreadable = false;  // so the template must name the command
  // Of a job that is being deleted:
  bool can_remove_sets = false;  // by a pod
  RemoverFacts remover;
  std::optional<Error> remover_refused;  // why it can't be created
  std::string sets_used_by;  // a job whose status names some of its sets, as used_by() finds it; "": none does
  double superstep_seconds = 0;
  // When the last superstep was seen to end, or the ranks began to run; not set while they don't.
  SteadyTime superstep_ended{};
  SteadyTime progress{};  // when a rank last reported a superstep that none had completed before
  double round_trip_seconds = 0;
  Hearing everywhere;   // of all jobs
  Time now{};           // to be stored, and nothing else
  SteadyTime steady{};  // what limits are counted on
  // job_clocks.h: for how long, as far as this operator can tell, …
  Duration started_for{};       // … since status.startTime
  Duration ended_for{};         // … since status.completionTime
  Duration starting_for{};      // … it has seen this attempt in phase Starting
  Duration start_counts_for{};  // … the same, anew whenever its gang has waited (gang.h)
  Duration refused_for{};       // … since the job gave back its slots, as it could get no pod (kPodsRefused)
  Duration restarting_for{};    // … since the last attempt failed
  Duration draining_for{};      // … it has seen ranks on nodes that they have to leave
  Duration set_for{};           // … since the last checkpoint set was begun, or the ranks run
  Duration pending_for{};       // … it has seen the pending set
  Duration suspending_for{};    // … it has seen that the job is to be suspended (checkpoints/suspension.h)
  Duration blank_for{};         // … it has seen pods of the job, but no status
  Duration resizing_for{};      // … the oldest resize that has not ended (resize/resize.h)
  Duration ahead_for{};         // … it has seen that ranks are ahead of the stored status (went_back.h)
  Duration reclaiming_for{};    // … it has seen that nothing runs of the job, which is being deleted
  std::map<migrate::Phase, SteadyTime> wave_since;  // … and since when the wave in each of its phases

  // What is known of the place where a rank is, or of any other seat; null: nothing.
  [[nodiscard]] const PodFacts* pod(const Seat& seat) const;
  [[nodiscard]] const AppFacts* app(const Seat& seat) const;
  [[nodiscard]] const SidecarFacts* sidecar(const Seat& seat) const;
  [[nodiscard]] const wire::RankStatus* said(const Seat& seat) const;  // null also if its sidecar has never answered
};

// Of the nodes and the ranks. `o` must outlive it.
observe::CpuFacts cpu_facts(const Observed& o);

// As if there were no other BSPJob.
std::vector<observe::NodeFacts> nodes_without_jobs(const Observed& o);

struct Event {
  std::string type;  // Normal, Warning
  std::string reason;
  std::string message;
  bool only_logged = false;  // a step on the way: people read how it ends
};

// The CPU that a pod's containers of ranks are to have, thousandths of a core.
struct PodResize {
  struct Seat {
    std::uint32_t local = 0;
    std::int64_t limit = 0, request = 0;
    bool operator==(const Seat&) const = default;
  };
  std::string pod;
  std::vector<Seat> seats;
  bool operator==(const PodResize&) const = default;
};

// A RankMigration to be deleted.
struct MigrationDeletion {
  std::string migration;
  std::string uid;
};

// What people read. No step of the job depends on it, so it is written when the ranks run.
struct Notices {
  std::vector<Event> events;
  std::vector<crds::RankMigration> migrations;  // to be created, or their status written
};

struct StatusChange {
  crds::BspJobStatus status;
  std::vector<ReservedSlot> reserve = {};  // to be reserved before the status is stored
  Seat show_logs_of = {};                  // whose last lines belong to status.message; of no pod: none
  Notices notices = {};                    // of it, once it is stored
};

struct Work {
  crds::BspJobStatus progress;  // the status with what may be stored late: superstep, times, memory
  bool moving = false;          // a wave is under way: what is reserved for it stays reserved
  bool starting = false;        // so it is while the job's pods find their nodes
  // Pods that an eviction has to leave it: all that it has, or more. 0: they may be evicted.
  std::uint32_t protect = 0;
  std::vector<PodRequest> create_pods = {};
  std::vector<std::string> delete_pods = {};
  std::vector<PodResize> resize_pods = {};
  std::vector<migrate::Action> actions = {};  // verbs to sidecars
  std::vector<MigrationDeletion> delete_migrations = {};
  WorkloadWrites workload = {};
  nlohmann::json pod_group = {};                      // to be created unless it is there; null: none is needed now
  bool make_remover = false, delete_remover = false;  // the pod that removes its checkpoint sets
  bool remove_finalizer = false;                      // the job is being deleted and nothing of it is left
  bool remove_job = false;                            // its time to live after the end is over
  Notices notices = {};
};

using Step = bsp::Step<StatusChange, Work>;

}  // namespace bsp::reconcile
