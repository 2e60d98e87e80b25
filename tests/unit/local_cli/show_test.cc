// What `local get` and `local describe` print, as pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json/yaml.h"
#include "operator/cli/table.h"
#include "operator/local/cli/describe.h"
#include "operator/local/cli/resources.h"

namespace bsp::local {
namespace {

using cli::age;
using nlohmann::json;
using ::testing::HasSubstr;

const Time kNow = from_rfc3339("2026-11-21T05:00:00Z");

json from_yaml(const char* text) { return read_yaml(text).value().at(0); }

const char* const kJob = R"(
apiVersion: migbsp.io/v1alpha1
kind: BSPJob
metadata: {name: lattice-boltzmann, namespace: default, uid: u, creationTimestamp: "2026-11-21T04:57:00.000000Z"}
spec:
  ranks: 4
  template: {spec: {containers: [{name: app, image: localhost/x}]}}
  rescheduling: {heuristic: AutoMig, mode: Migrate}
status:
  phase: Running
  reason: AllRanksRun
  superstep: 60
  alpha: 20
  d: 0.25
  imbalance: 0.61234567
  migrations: {waves: 1, succeeded: 2}
  realisedGainSeconds: 1.5
  summary: {ranks: slow 1/2 fast 3/4, imbalance: 61.2 %, moves: "2", gain: 1.5 s, pause: 254 ms, slowest: rank 0 on slow computes 40 ms a superstep}
  internal: "{}"
  ranksPerSet: [{set: slow, ranks: 1, slots: 2}, {set: fast, ranks: 3, slots: 4}]
  ranks:
  - {rank: 0, set: slow, node: slow-0, pod: lattice-boltzmann-r0-g0, timeSeconds: 0.05, computeSeconds: 0.04, memoryBytes: 1048576}
  - {rank: 1, set: fast, node: fast-0, pod: lattice-boltzmann-r1-g1, blockedReason: an open file of MPI-IO}
  conditions:
  - {type: Running, status: "True", lastTransitionTime: "2026-11-21T04:58:00Z", reason: AllRanksRun, message: all run}
)";

const char* const kMigration = R"(
apiVersion: migbsp.io/v1alpha1
kind: RankMigration
metadata: {name: m1, namespace: default, creationTimestamp: "2026-11-21T04:59:00Z"}
spec: {job: lattice-boltzmann, rank: 1, targetSet: fast}
status:
  phase: Succeeded
  sourceSet: slow
  targetSet: fast
  wave: 1
  bytes: 52428800
  pause: {totalMs: 254.26, dumpMs: 60}
  predictedGainSeconds: 2.5
  phaseTimes: [{phase: Pending, time: "2026-11-21T04:59:00Z"}, {phase: Preparing, time: "2026-11-21T04:59:01.5Z"}]
)";

std::string table(const char* kind, const std::vector<json>& objects, Output output = Output::kTable,
                  bool single = false) {
  return print(*resource_named(kind).value(), objects, output, single, kNow);
}

TEST(Get, JobsHaveTheColumnsOfTheCrd) {
  EXPECT_EQ(
      table("bspjobs", {from_yaml(kJob)}),
      "NAME                PHASE     WAVE   RANKS               SUPERSTEP   IMBALANCE   MOVES   GAIN    PAUSE    AGE\n"
      "lattice-boltzmann   Running          slow 1/2 fast 3/4   60          61.2 %      2       1.5 s   254 ms   3m\n");
}

TEST(Get, WideShowsAll) {
  EXPECT_EQ(table("bj", {from_yaml(kJob)}, Output::kWide),
            "NAME                PHASE     WAVE   RANKS               SUPERSTEP   IMBALANCE   MOVES   GAIN    PAUSE    "
            "CHECKPOINT   SAVED   REASON        RESTARTS   SLOWEST                                     AGE\n"
            "lattice-boltzmann   Running          slow 1/2 fast 3/4   60          61.2 %      2       1.5 s   254 ms   "
            "<unknown>            AllRanksRun              rank 0 on slow computes 40 ms a superstep   3m\n");
}

TEST(Get, Migrations) {
  EXPECT_EQ(table("rankmigration", {from_yaml(kMigration)}),
            "NAME   JOB                 RANK   FROM   TO     PHASE       PAUSE-MS   PREDICTED-S   GAIN   AGE\n"
            "m1     lattice-boltzmann   1      slow   fast   Succeeded   254.3      2.5                  60s\n");
}

TEST(Get, PodsAsKubectlShowsThem) {
  const json running = from_yaml(R"(
metadata: {name: a-r0-g0, creationTimestamp: "2026-11-21T04:59:30Z"}
spec: {nodeName: slow-0, containers: [{name: app}], initContainers: [{name: sidecar, restartPolicy: Always}]}
status:
  phase: Running
  containerStatuses: [{name: app, ready: true, started: true, restartCount: 0, state: {running: {}}}]
  initContainerStatuses: [{name: sidecar, ready: true, started: true, restartCount: 1}])");
  const json bad = from_yaml(R"(
metadata: {name: b, creationTimestamp: "2026-11-21T02:00:00Z"}
spec: {containers: [{name: app}]}
status: {phase: Failed, reason: ErrImageNeverPull})");
  EXPECT_EQ(table("pods", {running, bad}),
            "NAME      READY   STATUS              RESTARTS   AGE\n"
            "a-r0-g0   2/2     Running             1          30s\n"
            "b         0/1     ErrImageNeverPull   0          3h\n");
}

TEST(Get, NodesAndEvents) {
  EXPECT_EQ(table("nodes", {from_yaml(R"(
metadata: {name: slow-0, labels: {migbsp.io/set: slow}, annotations: {migbsp.io/cpu: "0.25"}, creationTimestamp: "2026-11-21T04:50:00Z"}
status: {conditions: [{type: Ready, status: "True"}]})")}),
            "NAME     STATUS   SET    CPU    AGE\n"
            "slow-0   Ready    slow   0.25   10m\n");
  EXPECT_EQ(table("events", {from_yaml(R"(
metadata: {name: e}
regarding: {kind: BSPJob, name: a}
eventTime: "2026-11-21T04:58:00.000000Z"
series: {count: 3, lastObservedTime: "2026-11-21T04:59:59.000000Z"}
type: Normal
reason: Moved
note: rank 1 runs in fast)")}),
            "LAST SEEN         TYPE     REASON   OBJECT     MESSAGE\n"
            "1s (x3 over 2m)   Normal   Moved    bspjob/a   rank 1 runs in fast\n");
}

TEST(Get, OtherForms) {
  const json job = from_yaml(kJob);
  EXPECT_EQ(table("bspjobs", {job}, Output::kName), "bspjob.migbsp.io/lattice-boltzmann\n");
  EXPECT_EQ(json::parse(table("bspjobs", {job}, Output::kJson, true)), job);
  const json list = read_yaml(table("bspjobs", {job, job}, Output::kYaml)).value().at(0);
  EXPECT_EQ(list["kind"], "List");
  EXPECT_EQ(list["items"], json::array({job, job}));
}

TEST(Get, YamlIsAsKubectlWritesIt) {
  const json object = {{"b", {1, 2.5, nullptr, true}},
                       {"a", {{"text", "plain words"}, {"number", "17"}, {"empty", ""}, {"yes", "on"}}},
                       {"list", {{{"k", "v"}, {"l", json::array()}}}},
                       {"args", {"--width", "a: b", "#"}},
                       {"time", "2026-11-21"}};
  const std::string text = write_yaml(object);
  EXPECT_EQ(text,
            "a:\n"
            "  empty: \"\"\n"
            "  number: \"17\"\n"
            "  text: plain words\n"
            "  \"yes\": \"on\"\n"
            "args:\n"
            "- --width\n"
            "- \"a: b\"\n"
            "- \"#\"\n"
            "b:\n"
            "- 1\n"
            "- 2.5\n"
            "- null\n"
            "- true\n"
            "list:\n"
            "- k: v\n"
            "  l: []\n"
            "time: \"2026-11-21\"\n");
  EXPECT_EQ(read_yaml(text).value().at(0), object);
}

TEST(Get, SuggestsTheNearestKind) {
  EXPECT_THAT(resource_named("bspjbs").error().message, HasSubstr("did you mean bspjobs?"));
}

TEST(Age, AsKubectlRounds) {
  auto ago = [](long seconds) { return age(kNow - std::chrono::seconds(seconds), kNow); };
  EXPECT_EQ(ago(0), "0s");
  EXPECT_EQ(ago(119), "119s");
  EXPECT_EQ(ago(200), "3m20s");
  EXPECT_EQ(ago(3600), "60m");
  EXPECT_EQ(ago(4 * 3600 + 60), "4h1m");
  EXPECT_EQ(ago(26 * 3600), "26h");
  EXPECT_EQ(ago(75 * 3600), "3d3h");
  EXPECT_EQ(ago(20 * 86400), "20d");
  EXPECT_EQ(age(Time{}, kNow), "<unknown>");
}

TEST(Describe, TellsAllOfAJob) {
  const auto job = crds::bsp_job_from_json(from_yaml(kJob));
  ASSERT_TRUE(job) << job.error().message;
  const json event = {
      {"type", "Normal"}, {"reason", "Started"}, {"eventTime", "2026-11-21T04:58:00.000000Z"}, {"note", "4 ranks"}};
  const std::string text = describe_job(*job, {"call after superstep 40"}, {event}, kNow);
  for (const char* part :
       {"Name:             lattice-boltzmann\n", "Phase:            Running\n", "Imbalance:        61.2 %\n",
        "Migrations:       2 succeeded, 0 rolled back, 0 failed, 0 under way; 1 wave\n",
        "Gain:             predicted unknown yet, realised 1.500 s\n",
        "Ranks per Set:\n  SET    RANKS   SLOTS\n  slow   1       2\n  fast   3       4\n",
        "  0      slow   slow-0   lattice-boltzmann-r0-g0   0.0500   0.0400      1.0 MiB   yes\n",
        "no: an open file of MPI-IO\n", "Last decision:\n  call after superstep 40\n", "Calibration:      <none>\n",
        "Conditions:\n  TYPE      STATUS   SINCE   REASON        MESSAGE\n  Running   True     2m      AllRanksRun   "
        "all run\n",
        "Events:\n  TYPE     REASON    AGE   MESSAGE\n  Normal   Started   2m    4 ranks\n"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Describe, TellsAllOfAMigration) {
  const auto migration = crds::rank_migration_from_json(from_yaml(kMigration));
  ASSERT_TRUE(migration) << migration.error().message;
  const std::string text = describe_migration(*migration, kNow);
  for (const char* part : {"Rank:             1\n", "From:             slow\n", "Carried:          50.0 MiB\n",
                           "Gain:             predicted 2.500 s, realised unknown yet\n",
                           "  Preparing   2026-11-21T04:59:01.500000Z   1500.0\n", "  254.3      0.0    0.0     60.0"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace bsp::local
