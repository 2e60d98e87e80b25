#include "operator/reconcile/kernel/conditions.h"

#include <algorithm>
#include <array>

#include "base/core/error.h"

namespace bsp::reconcile {
namespace {

constexpr auto kKinds = std::to_array<ConditionKind>({
    {kWaitingForSlots, "the slots of all ranks aren't free at once", "HeldByOthers",
     "waits for 8 slots in fast, slow, held by job heat (3 free)",
     "add nodes to these Sets, end the jobs that hold them, or raise spec.runPolicy.priority"},
    {kPodGroupRefused, "the PodGroup of a job with spec.scheduling.gang can't be created",
     "NotServed, Forbidden, Refused", "spec.scheduling.gang is Volcano, and its PodGroup can't be created: forbidden",
     "create the job again with Reserve"},
    {kGangNotEnsured, "the start may not be all or nothing, as spec.scheduling.gang asks",
     "NoScheduler, SchedulerNotNamed",
     "spec.scheduling.gang is SchedulerPlugins, and spec.template.spec.schedulerName names no scheduler",
     "name a scheduler of gangs there, or create the job again with Reserve"},
    {kStartDelayed, "a container isn't started, or a rank not restored, for a reason that may pass", "ContainerWaits",
     "pod heat-r0-g0: container app: image registry.example/heat:3 can't be pulled",
     "correct what it names; the start is given up after jobs.startTimeoutSeconds of the chart"},
    {kPodsRefused, "a job can get no pod, so that it gives the slots of its ranks back", "Refused",
     "pod heat-r0-g0 can't be created: exceeded quota: compute; its slots are free for other jobs, and the "
     "start is tried again 30 s later",
     "correct what it names; the job then starts by itself"},
    {kNoSupersteps, "no superstep has ended for long, so that no rank can move", "NoEdge",
     "no superstep has ended for 60 s, and until one does no rank can move: rank 3 calls MPI_Bcast most often",
     "name the call that ends a superstep in spec.superstep.call of a new job, or let its spec.rescheduling.mode be "
     "Off"},
    {kMixedUnits, "some ranks' work is counted in instructions and others' in CPU time", "CountersMissing",
     "ranks report counted instructions in fast and CPU time in slow, so no rank is moved",
     "name Sets of one kind in spec.sets.names"},
    {kCpuFeaturesDiffer, "ranks can't go to a Set of the job, whose CPUs lack features that their libraries may use",
     "FeaturesMissing",
     "ranks 0, 2 can't go to Set slow, whose CPUs lack avx512f: their libraries have seen these features when they "
     "chose their code",
     "create a job with spec.cpu: Common, which starts with what the CPUs of all its Sets have, or name Sets whose "
     "CPUs have them in spec.sets.names"},
    {kMovesLackMemory, "a Set has free slots but no node with the memory for a move", "NodeMemory",
     "no rank can move into Set fast: node fast-1 has 300 MiB free",
     "free memory there, or name Sets whose nodes have more in spec.sets.names"},
    {kSeccompReplaced, "the template's seccomp profile would keep ranks from moving", "CheckpointNeedsUnconfined",
     "spec.template asks for seccompProfile RuntimeDefault, and the program runs Unconfined",
     "to keep the profile, create the job with spec.rescheduling.mode Off or Advise and without "
     "spec.checkpoint.storage"},
    {kTemplateOverridden, "the pods have fields of the template otherwise", "ReplacedByOperator",
     "spec.template.spec.restartPolicy is OnFailure and the pods have Never", "leave that out of spec.template"},
    {kCpuThrottled, "a CPU limit holds a rank back", "CPULimit",
     "rank 2 was held back for 40 % of the time by its CPU limit of 1, and every superstep waits for the slowest rank",
     "raise or remove spec.template.spec.containers[app].resources.limits.cpu and keep the request, or let "
     "spec.rescheduling.resize be Auto"},
    {kDraining, "ranks have to leave their node", "MovingAway, NowhereToGo",
     "node fast-1 is drained, and ranks 0, 3 must leave it",
     "wait for the moves, add nodes to the job's Sets, or uncordon the node"},
    {kWaveDelayed, "a wave waits for a rank to continue", "RanksNotThrough",
     "rank 4 hasn't come through; the other ranks wait for it",
     "if it doesn't come through, suspend or delete the job, or let spec.runPolicy.activeDeadlineSeconds end it"},
    {kNotCheckpointable, "a rank could not be dumped, so that the job has no newer checkpoint set to go on from",
     "CheckpointFailed, Postponed", "rank 3: it holds a connected socket (fd 7)",
     "let the program release what is named (docs/what-moves.md); it ends with the next set that is made"},
    {kSetsNotRemoved, "a job that is being deleted has checkpoint sets that can't be removed yet",
     "StorageRefused, PodRefused, PodWaits, InUse, GivenUp",
     "the checkpoint storage s3://sets at https://minio.storage:9000: AccessDenied; allow the key to put, get, "
     "list and delete objects below the prefix",
     "correct what it names; it is tried for three minutes, then the job goes, and the event SetsLeft names what "
     "stays"},
    {kReportsRejected, "a sidecar has sent something impossible lately", "NotBelieved",
     "a message of the sidecar of rank 1 (heat-r1-g0) was rejected; the scheduler works without it",
     "see the logs of the sidecar and the operator"},
    {kSidecarSilent, "a sidecar doesn't answer the operator", "NoAnswer",
     "the sidecar of rank 1 (heat-r1-g0) does not answer the operator; heat-r2-g0 hears it, so the job is left alone",
     "check the pod's node and its network"},
    {kCertificatesRefused, "the operator and a sidecar don't accept each other's certificates", "Renewing",
     "the operator and the sidecars of ranks 0, 1 don't accept each other's certificates, as after the loss of "
     "its seed; new ones reach a pod within minutes, until when the job runs on, its superstep isn't known and no rank "
     "moves",
     "if it lasts for more than five minutes, see the operator's log and the event CertificatesNotRenewed"},
    {kOperatorCutOff, "most sidecars don't answer", "MostAreSilent",
     "5 of the 8 sidecars of this job do not answer: the operator suspects its own network, so it ends and restarts "
     "nothing",
     "check the network between the operator and the nodes of the job"},
    {kStalled, "an internal error keeps the operator from working on the job", "InternalError",
     "a message of the error", "please report it with the operator's log"},
    {kUnreadable, "the job's object can't be read, so that nothing is done about it", "Unreadable",
     "spec.ranks: must be a number; this operator is version 0.2.0",
     "install a version that can, or correct the field"},
    {"Starting", "the pods start", "the phase's", "the phase's", ""},
    {"Running", "every rank runs, also while some move", "the phase's", "the phase's", ""},
    {"Migrating", "a wave moves ranks", "the phase's", "the phase's", ""},
    {"Suspended", "spec.runPolicy.suspend, or Kueue's queue", "the phase's", "the phase's", ""},
    {"Complete", "the program has ended well", "the phase's", "the phase's", ""},
    {"Failed", "the job has failed for good", "the phase's", "the phase's, with the last lines of a rank's log", ""},
});

}  // namespace

std::span<const ConditionKind> condition_kinds() { return kKinds; }

const ConditionKind& condition_kind(std::string_view type) {
  const auto kind = std::ranges::find(kKinds, type, &ConditionKind::type);
  check(kind != kKinds.end(), "every condition is in the table");
  return *kind;
}

std::string with_remedy(std::string_view type, std::string message) {
  const std::string_view remedy = condition_kind(type).remedy;
  if (remedy.empty() || message.ends_with(remedy)) return message;
  return message + "; " + std::string(remedy);
}

}  // namespace bsp::reconcile
