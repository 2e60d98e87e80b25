// Jobs of other kinds, and what of them is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json/yaml.h"
#include "operator/convert/convert.h"
#include "tests/unit/reconcile/every_place.h"

namespace bsp::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kVolcano = R"(apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: v}
spec:
  plugins: {mpi: ["--master=m", "--worker=w"], ssh: []}
  tasks:
  - name: m
    template: {spec: {containers: [{name: c, image: i, command: [sh, -c, "mpiexec --host ${MPI_HOST} ./a"]}]}}
  - name: w
    replicas: 2
    template: {spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]}}
)";
constexpr const char* kTrainJob = R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: r}
spec:
  mlPolicy: {numNodes: 3, mpi: {numProcPerNode: 2}}
  template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: r}]}}}}}]}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t}
spec:
  runtimeRef: {name: r}
  suspend: false
  trainer: {command: [mpirun, ./a], env: [{name: A, value: b}], resourcesPerNode: {limits: {cpu: 2}}}
)";
constexpr const char* kOld = R"(apiVersion: kubeflow.org/v1alpha1
kind: MPIJob
metadata: {name: o}
spec:
  gpus: 8
  gpusPerNode: 4
  template: {spec: {containers: [{name: c, image: i, command: [mpirun, ./a]}]}}
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}
std::string outcome(const std::string& manifest) {
  const auto converted = convert(manifest, "a.yaml");
  return converted ? converted->yaml : converted.error().message;
}

TEST(Kinds, RanksAreThoseOfTheKind) {
  EXPECT_THAT(outcome(kVolcano), HasSubstr("ranks: 2\n"));
  EXPECT_THAT(outcome(with(kVolcano, "ssh: []", "env: []")), HasSubstr("ranks: 2\n"));
  EXPECT_THAT(outcome(kTrainJob), HasSubstr("ranks: 6\n"));
  EXPECT_THAT(outcome(with(kTrainJob, "trainer: {", "trainer: {numNodes: 1, numProcPerNode: 3, ")),
              HasSubstr("ranks: 3\n"));
  EXPECT_THAT(
      outcome(with(with(kTrainJob, "mpi: {numProcPerNode: 2}", "flux: {numProcPerNode: 4}"), "[mpirun, ./a]", "[./a]")),
      HasSubstr("ranks: 12\n"));
  EXPECT_THAT(outcome(kOld), HasSubstr("ranks: 8\n"));
  EXPECT_THAT(outcome(kOld), HasSubstr("nvidia.com/gpu: \"1\""));
  EXPECT_THAT(outcome(with(kOld, "gpus: 8", "replicas: 3")), HasSubstr("ranks: 12\n"));
}

TEST(Kinds, MessagesNameTheFieldsOfTheFile) {
  for (const auto& [manifest, message] : std::vector<std::pair<std::string, std::string>>{
           {with(kVolcano, "replicas: 2", "replicas: 0"),
            "a.yaml:10: spec.tasks[1].replicas: is 0: must be a whole number"},
           {with(kVolcano, "mpiexec", "python"),
            "a.yaml:8: spec.tasks[0].template.spec.containers[0].command: runs \"python\""},
           {with(kVolcano, "--master=m", "--master=x"), "ranks: 2"},
           {with(with(kVolcano, "--master=m", "--master=x"), "mpiexec", "python"),
            "a.yaml:6: spec.tasks: has no task that runs mpirun: name it by --master=TASK"},
           {with(kTrainJob, "image: r", "tty: true"), "spec.trainer.image: is missing"},
           {with(kTrainJob, "trainer: {", "trainer: {numNodes: x, "),
            "a.yaml:14: spec.trainer.numNodes: is \"x\": must be a"},
           {with(kTrainJob, "[mpirun, ./a]", "[python]"),
            "a.yaml:14: spec.trainer.command: runs \"python\" and not mpirun"},
           {with(kTrainJob, "mpi: {numProcPerNode: 2}", "torch: {}"), "holds no MPIJob"},
           {with(kOld, "gpus: 8", "gpus: [8]"), "a.yaml:5: spec.gpus: must be a whole number"},
           {with(kOld, "template:", "tmplate:"), "a.yaml:4: spec.template: must be a pod template"}})
    EXPECT_THAT(outcome(manifest), HasSubstr(message)) << manifest;
}

// A program that can't run as it is: said first, and apart from what is only left out.
TEST(Kinds, WhatHasToBeRebuiltIsNamed) {
  const auto of = [](const std::string& manifest) { return convert(manifest, "a.yaml")->rebuild; };
  EXPECT_THAT(of(kVolcano), testing::IsEmpty());
  EXPECT_THAT(of(kOld), ElementsAre(HasSubstr("nvidia.com/gpu: a rank that uses a device")));
  EXPECT_THAT(of(with(kVolcano, "./a", "./all_reduce_perf_nccl")), ElementsAre(HasSubstr("NCCL or RCCL")));
  EXPECT_THAT(of(with(kTrainJob, "numProcPerNode: 2", "mpiImplementation: Intel")),
              ElementsAre(HasSubstr("Intel: rebuild")));
}

TEST(Kinds, ATextWithinAnObjectIsRead) {
  std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  other: 'kind: MPIJob'\n  job: |\n    ";
  for (const char c : std::string(kOld)) map += c == '\n' ? std::string("\n    ") : std::string(1, c);
  const auto converted = convert(map, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("ranks: 8\n"));
  EXPECT_THAT(converted->notes,
              testing::Contains(HasSubstr("a.yaml:6: data.job: the text of ConfigMap m holds the job")));
  EXPECT_THAT(outcome(with(map, "gpus: 8", "gpus: x")),
              HasSubstr("a.yaml:11: data.job: spec.gpus: must be a whole number"));
}

TEST(Kinds, EveryValueAtEveryPlace) {
  for (const char* text : {kVolcano, kTrainJob, kOld}) {
    auto documents = read_yaml(text);
    ASSERT_TRUE(documents);
    const auto use = [&](const nlohmann::json& changed, const auto&) {
      std::string file = write_yaml(changed);
      const auto done = convert(file, "a.yaml");
      EXPECT_TRUE(done || done.error().code == ErrorCode::kInvalid) << file;
    };
    nlohmann::json list = {{"kind", "List"}, {"items", *documents}};
    reconcile::hostile::at_every_place(list, use);
  }
}

}  // namespace
}  // namespace bsp::convert
