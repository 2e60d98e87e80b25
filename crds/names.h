// Every name that crosses a process boundary, in one place: API group, labels, annotations,
// environment variables, paths inside a pod, ports, limits.
//
// Who reads what: the operator writes pods with these names; bsp-init, the shim and the sidecar find
// each other by them; kubectl users select by the labels. Formats of the messages are in wire.h, the
// shared memory in sidecar/ring/ring.h, the epoch descriptor below.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bsp::names {

// --- API -----------------------------------------------------------------------------------------
inline constexpr std::string_view kGroup = "migbsp.io";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "migbsp.io/v1alpha1";
inline constexpr std::string_view kBspJobKind = "BSPJob";
inline constexpr std::string_view kRankMigrationKind = "RankMigration";

// --- What bsp-operator writes for later, and for other programs (field "schema") -----------------------
inline constexpr std::string_view kRecordSchema = "migbsp.io/record/v1";  // a rescheduling call: operator/record
inline constexpr std::string_view kAdviceSchema = "migbsp.io/advice/v1";  // bsp-operator advise -o json

// --- Labels (on pods, secrets, RankMigrations; select with kubectl -l) -----------------------------
inline constexpr std::string_view kLabelJob = "migbsp.io/job";                // BSPJob's name
inline constexpr std::string_view kLabelRank = "migbsp.io/rank";              // decimal
inline constexpr std::string_view kLabelGeneration = "migbsp.io/generation";  // pods made for the rank so far
inline constexpr std::string_view kLabelSet = "migbsp.io/set";                // on pods and on nodes
inline constexpr std::string_view kLabelAttempt = "migbsp.io/attempt";        // restarts of the job so far
inline constexpr std::string_view kLabelRole = "migbsp.io/role";              // "rank" or "target"

// Where no node carries kLabelSet: the labels by which clouds and autoscalers name a node's pool.
inline constexpr std::array<std::string_view, 5> kPoolLabels{
    "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool", "kops.k8s.io/instancegroup"};

// Labels that each kubelet gives its node, and the only values for which the runtime is built.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPlatformLabels{
    {{"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "linux"}}};

// On containers that the local node made (podman ps --filter label=…), never on API objects.
inline constexpr std::string_view kLabelPod = "migbsp.io/pod";         // the Pod's name
inline constexpr std::string_view kLabelPodUid = "migbsp.io/pod-uid";  // the Pod's uid
inline constexpr std::string_view kLabelStore = "migbsp.io/store";     // directory of the object store

// --- Annotations -----------------------------------------------------------------------------------
inline constexpr std::string_view kAnnotationFaultPoints =
    "migbsp.io/fault-points";  // on a BSPJob: its pods have them (tests)
inline constexpr std::string_view kAnnotationMigration = "migbsp.io/migration";  // RankMigration a target waits for
// On a pod with several seats: the ranks that it was made for, by seat, "4,5,6". (The label has the first.)
inline constexpr std::string_view kAnnotationRanks = "migbsp.io/ranks";
// On a rank's pod, by a person or a tool: the Set that the rank is to move to, or * for any other node.
inline constexpr std::string_view kAnnotationMoveTo = "migbsp.io/move-to";
// On a BSPJob, by a person or a tool: each new value, such as the time, asks for a checkpoint set.
inline constexpr std::string_view kAnnotationCheckpoint = "migbsp.io/checkpoint";
inline constexpr std::string_view kAnnotationPodHash =
    "migbsp.io/made-from";  // SHA-256 of the pod as the operator sent it
// On nodes, by `local` or an administrator: what a rank gets there, as a fraction of a core of any one kind; the same for all
// nodes. Without it, nodes count as equally fast until they are measured, and a Set without ranks is tried with one.
inline constexpr std::string_view kAnnotationSpeed = "migbsp.io/cpu";
// On nodes, by an administrator or a tool: what the whole node costs an hour, in any one currency. Without it the chart's table of
// instance types counts (labels node.kubernetes.io/instance-type).
inline constexpr std::string_view kAnnotationPrice = "migbsp.io/price-per-hour";
inline constexpr std::string_view kLabelInstanceType = "node.kubernetes.io/instance-type";

// --- Finalizer on BSPJobs: their pods are gone before they are -----------------------------------------
inline constexpr std::string_view kFinalizer = "migbsp.io/pods";

// --- Containers and images -------------------------------------------------------------------------
inline constexpr std::string_view kAppContainer = "app";
inline constexpr std::string_view kSidecarContainer = "sidecar";
inline constexpr std::string_view kRuntimeImage = "localhost/bsp-runtime:dev";

// --- Paths inside a pod ----------------------------------------------------------------------------
inline constexpr std::string_view kRuntimeDir = "/bsp";                 // bsp-init, libbspmpi.so, criu, bsp-sidecar
inline constexpr std::string_view kRunDir = "/run/bsp";                 // shared by app and sidecar: tmpfs
inline constexpr std::string_view kRingFile = "/run/bsp/ring";          // sidecar/ring/ring.h
inline constexpr std::string_view kEpochFile = "/run/bsp/epoch";        // the epoch descriptor
inline constexpr std::string_view kControlSocket = "/run/bsp/control";  // sidecar listens, bsp-init connects
// Where the sidecar, and it alone, mounts the volume of the checkpoint sets.
inline constexpr std::string_view kStorageDir = "/var/lib/bsp-sets";
// Likewise the credentials of a bucket, and the certificate of its server's CA.
inline constexpr std::string_view kStorageCredentials = "/run/bsp-s3";
inline constexpr std::string_view kStorageCaDir = "/run/bsp-s3-ca";
inline constexpr std::string_view kStorageCaKey = "ca.crt";
// Likewise the key of an exported set with which the job begins (spec.restoreFrom.keySecret): 32 bytes.
inline constexpr std::string_view kSetKeyDir = "/run/bsp-set-key";
inline constexpr std::string_view kSetKey = "key";
inline constexpr std::string_view kImagesDir = "/run/bsp/images";  // capture socket and received images
inline constexpr std::string_view kTlsDir = "/run/bsp-tls";        // ca.pem, cert.pem, key.pem: sidecar only

// Open MPI's files in /dev/shm begin with it: they last as long as an epoch, and belong to one pod.
inline constexpr std::string_view kSharedSegment = "sm_segment.";
// Of a pod with several seats: each has its part of these in its own directory, which is kRunDir in its app container.
inline constexpr std::string_view kSeatDirectory = "seat-";  // seat-0, seat-1, … (crds/seat.h)

// At the end of the app container's termination message.
inline constexpr std::string_view kFinalizedNote = "the program had returned from MPI_Finalize";

// --- Ports -----------------------------------------------------------------------------------------
inline constexpr std::uint16_t kSidecarPort = 7600;   // mTLS: operator and peer sidecars
inline constexpr std::uint16_t kLivenessPort = 7601;  // HTTP without TLS: the kubelet (sidecar/agent/liveness.h)

// --- Supersteps --------------------------------------------------------------------------------------
// The blocking collectives that can end one (spec.superstep.call), in the order of bsp_ring.collectives.
inline constexpr std::array<std::string_view, 17> kEdgeCalls = {
    "MPI_Barrier",   "MPI_Bcast",     "MPI_Gather",     "MPI_Gatherv",        "MPI_Scatter",
    "MPI_Scatterv",  "MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall",       "MPI_Alltoallv",
    "MPI_Alltoallw", "MPI_Reduce",    "MPI_Allreduce",  "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
    "MPI_Scan",      "MPI_Exscan"};
inline constexpr std::string_view kEdgeAuto = "Auto";  // instead of one: the ranks find out which of them recurs

// --- Environment -----------------------------------------------------------------------------------
// Set by the operator on the app container, read by bsp-init and the shim.
inline constexpr std::string_view kEnvRunDir = "BSP_RUN_DIR";       // instead of /run/bsp (tests)
inline constexpr std::string_view kEnvSuperstep = "BSP_SUPERSTEP";  // call:stride, e.g. MPI_Barrier:1, or Auto
inline constexpr std::string_view kEnvUser = "BSP_USER";            // uid[:gid] or name[:group] of the program
// Supplementary groups that the template asks for, between spaces, and "Strict" if that is its supplementalGroupsPolicy.
inline constexpr std::string_view kEnvGroups = "BSP_GROUPS";
inline constexpr std::string_view kEnvGrace = "BSP_GRACE_SECONDS";  // the pod's terminationGracePeriodSeconds
// The app container's terminationMessagePath, if its template names one.
inline constexpr std::string_view kEnvTerminationLog = "BSP_TERMINATION_LOG";
inline constexpr std::string_view kEnvCarryPaths = "BSP_CARRY_PATHS";  // ':'-separated absolute paths
// Likewise: where the app container mounts volumes that end with its pod, for writing.
inline constexpr std::string_view kEnvPodVolumes = "BSP_POD_VOLUMES";
// How long the first MPI_Init waits for its epoch, which opens once all ranks' pods are ready.
inline constexpr std::string_view kEnvFirstEpoch = "BSP_FIRST_EPOCH_SECONDS";
// "Common": bsp-init starts the program once its sidecar says with which CPU features (spec.cpu). Else at once.
inline constexpr std::string_view kEnvCpu = "BSP_CPU";
// Of bsp-init and the sidecar, instead of the CPU's: names of base/core/cpu_features.h between commas. Tests only.
inline constexpr std::string_view kEnvCpuFeatures = "BSP_CPU_FEATURES";
// Set by bsp-init on the program: bsp-init's own child alone is seen to stop, and moves.
inline constexpr std::string_view kEnvInitPid = "BSP_INIT_PID";
// Set by the operator on the sidecar.
inline constexpr std::string_view kEnvJob = "BSP_JOB";
inline constexpr std::string_view kEnvJobUid = "BSP_JOB_UID";
inline constexpr std::string_view kEnvRank = "BSP_RANK";
inline constexpr std::string_view kEnvRanks = "BSP_RANKS";
inline constexpr std::string_view kEnvPod = "BSP_POD";            // pod name = this end's TLS identity
inline constexpr std::string_view kEnvListen = "BSP_LISTEN";      // address:port, default [::]:7600
inline constexpr std::string_view kEnvLiveness = "BSP_LIVENESS";  // address:port of the liveness probe; "": none
inline constexpr std::string_view kEnvTlsDir = "BSP_TLS_DIR";     // instead of /run/bsp-tls
// Where checkpoint sets are stored: a directory, or s3://bucket[/prefix]; "": nowhere.
inline constexpr std::string_view kEnvStorage = "BSP_STORAGE";
inline constexpr std::string_view kEnvStorageEndpoint = "BSP_STORAGE_ENDPOINT";  // of a bucket: http[s]://host[:port]
inline constexpr std::string_view kEnvStorageRegion = "BSP_STORAGE_REGION";
inline constexpr std::string_view kEnvStorageCa = "BSP_STORAGE_CA";  // file of certificates; "": the usual ones
// Not empty: no bsp-init will connect, and the program runs as the sidecar's user. Tests only.
inline constexpr std::string_view kEnvWithoutInit = "BSP_WITHOUT_INIT";
// Fault points: "point=action" pairs separated by commas (see base/core/fault.h). Tests only.
inline constexpr std::string_view kEnvFaults = "BSP_FAULTS";
inline constexpr std::string_view kEnvFaultDirectory = "BSP_FAULT_DIRECTORY";

// --- The epoch descriptor (kEpochFile) ---------------------------------------------------------------
// Text, one KEY=VALUE a line, written to a temporary name and renamed by the sidecar when an epoch
// opens; read by the shim in MPI_Init and after each gate. Besides the keys below it holds every
// PMIX_* variable that PMIx_server_setup_fork returned; the shim puts those into its environment.
inline constexpr std::string_view kEpochNumber = "BSP_EPOCH";            // decimal, strictly growing
inline constexpr std::string_view kEpochRank = "BSP_RANK";               // decimal
inline constexpr std::string_view kEpochRanks = "BSP_RANKS";             // decimal
inline constexpr std::string_view kEpochRankSets = "BSP_RANK_SETS";      // Set number of each rank: 0,0,1,1
inline constexpr std::string_view kEpochLocalRanks = "BSP_LOCAL_RANKS";  // those of this pod, ascending: 4,5
// PMIx namespace of an epoch: <job uid>-e<epoch>.

// --- TLS ---------------------------------------------------------------------------------------------
// One CA per job. A certificate's subject CN is the pod's name, or this for the operator.
inline constexpr std::string_view kOperatorIdentity = "bsp-operator";

}  // namespace bsp::names
