#include "operator/convert/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <nlohmann/json.hpp>

#include "base/json/yaml.h"
#include "tests/unit/reconcile/every_place.h"

namespace bsp::convert {
namespace {

using testing::HasSubstr;

std::string job(std::string_view command, std::string_view more = "") {
  return std::format(R"(apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: a}}
spec:
  {}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: l
            image: i
            command: {}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {{name: w, image: i}}
)",
                     more, command);
}

TEST(Convert, WithoutANumberEverySlotIsARank) {
  const auto converted = convert(job("[mpirun, ./a]", "slotsPerWorker: 8"), "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("ranks: 16"));
  EXPECT_TRUE(converted->rebuild.empty());
}

// kubectl reads 0400 as octal, and a volume's mode must stay what it was.
TEST(Convert, ModesStayOctal) {
  std::string manifest = job("[mpirun, ./a]");
  manifest += "          volumes:\n          - {name: keys, secret: {secretName: k, defaultMode: 0400}}\n";
  const auto converted = convert(manifest, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("defaultMode: 256"));
}

TEST(Convert, RanksPerWorkerCountWhereNoNumberIsGiven) {
  for (const std::string options : {"-npernode, '3'", "-N, '3'", "-ppn, '3'", "--map-by, 'ppr:3:node:pe=2'"}) {
    const auto converted = convert(job("[mpirun, " + options + ", ./a]", "slotsPerWorker: 8"), "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr("ranks: 6")) << options;
  }
  const auto converted = convert(job("[mpirun, -np, '5', --map-by, slot, ./a]", "slotsPerWorker: 8"), "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("ranks: 5"));
}

TEST(Convert, AShellMayHaveOptions) {
  for (const std::string options : {"-cx", "-o, pipefail, -c", "-euxo, pipefail, -c", "--login, -c"}) {
    const auto converted = convert(job("[/bin/bash, " + options + ", 'mpirun ./solve']"), "a.yaml");
    ASSERT_TRUE(converted) << options << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr("./solve")) << options;
  }
}

TEST(Convert, VariablesThatTheArgumentsNameComeAlong) {
  std::string manifest = job("[mpirun, -x, KEY=$(KEY), ./a, --steps=$(STEPS)]");
  manifest.insert(manifest.find("    Worker:"),
                  "            env:\n"
                  "            - {name: STEPS, value: '7'}\n"
                  "            - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}\n"
                  "            - {name: STEPSIZE, value: '8'}\n");
  const auto converted = convert(manifest, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("name: STEPS\n"));
  EXPECT_THAT(converted->yaml, HasSubstr("secretKeyRef"));
  EXPECT_THAT(converted->yaml, Not(HasSubstr("value: $(KEY)")));
  EXPECT_THAT(converted->notes, testing::ElementsAre(HasSubstr("STEPSIZE is not carried over")));
}

TEST(Convert, ADeviceIsNotShared) {
  std::string manifest = job("[mpirun, ./a]", "slotsPerWorker: 4");
  const std::string worker = "{name: w, image: i}";
  const auto with = [&](const std::string& devices) {
    std::string changed = manifest;
    return changed.replace(changed.find(worker), worker.size(),
                           "{name: w, image: i, resources: {limits: {nvidia.com/gpu: " + devices + "}}}");
  };
  const auto divided = convert(with("8"), "a.yaml");
  ASSERT_TRUE(divided) << divided.error().message;
  EXPECT_THAT(divided->yaml, HasSubstr("nvidia.com/gpu: \"2\""));
  EXPECT_THAT(divided->rebuild, testing::ElementsAre(HasSubstr("a rank that uses a device such as a GPU can't move")));
  const auto shared = convert(with("1"), "a.yaml");
  ASSERT_FALSE(shared);
  EXPECT_THAT(shared.error().message,
              HasSubstr("limits.nvidia.com/gpu: is 1 for 4 ranks, and a rank can't share a device: "
                        "write nvidia.com/gpu: 4, or none"));
}

std::string with_worker(std::string manifest, const std::string& container) {
  const std::string plain = "{name: w, image: i}";
  return manifest.replace(manifest.find(plain), plain.size(), container);
}

TEST(Convert, QuotedDevicesAreNotSharedEither) {
  for (const std::string devices : {"nvidia.com/gpu: '1'", "amd.com/gpu: 1", "amd.com/gpu: '3'", "a.b/c: '1500m'"}) {
    const auto converted = convert(with_worker(job("[mpirun, ./a]", "slotsPerWorker: 2"),
                                               "{name: w, image: i, resources: {limits: {" + devices + "}}}"),
                                   "a.yaml");
    ASSERT_FALSE(converted) << devices << converted->yaml;
    EXPECT_THAT(converted.error().message, HasSubstr("for 2 ranks, and a rank can't share a device")) << devices;
  }
}

TEST(Convert, HydrasEnvironmentMayBeOneWord) {
  const auto converted = convert(job("[mpiexec.hydra, -genv, A=1, -genv, B, '2', -n, '4', ./a]"), "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->rebuild,
              testing::ElementsAre(HasSubstr("mpiexec.hydra: rebuild the program with Open MPI 5")));
  EXPECT_THAT(converted->yaml, HasSubstr("ranks: 4"));
  EXPECT_THAT(converted->yaml, HasSubstr("name: A"));
  EXPECT_THAT(converted->yaml, HasSubstr("name: B"));
}

TEST(Convert, V1alpha2IsReadAsV1) {
  std::string manifest = job("[mpirun, ./a]");
  manifest.replace(manifest.find("v2beta1"), 7, "v1alpha2");
  EXPECT_TRUE(convert(manifest, "a.yaml"));
}

TEST(Convert, WrongInputNamesLineFieldAndRemedy) {
  for (const auto& [manifest, message] : std::vector<std::pair<std::string, std::string>>{
           {"kind: [", "a.yaml:1: "},
           {"kind: Pod\n", "holds no MPIJob"},
           {"apiVersion: kubeflow.org/v3\nkind: MPIJob\nspec: {}\n",
            "a.yaml:1: apiVersion: is \"kubeflow.org/v3\": must be kubeflow.org/v2beta1, v1, v1alpha2 or v1alpha1"},
           {"apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec:\n  mpiReplicaSpecs: {}\n",
            "a.yaml:4: spec.mpiReplicaSpecs.Launcher: is missing"},
           {"apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec: 3\n", "a.yaml:3: spec: must be an object"},
           {"apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec:\n  runPolicy: [{backoffLimit: 2}]\n",
            "a.yaml:4: spec.runPolicy: must be an object"},
           {job("[python, a.py]"),
            "a.yaml:13: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command: runs \"python\" and not "
            "mpirun"},
           {job("[sh, -c, cp a b && mpirun c]"), ".command: line 1 of its script runs \"cp\": do it in the image"},
           {job("[sh, run.sh]"), "starts a shell without a command line"},
           {job("[mpirun, -np, many, a]"), ".command: -np is \"many\": write a number"},
           {job("[mpirun, -np, '2']"), "no program to run"},
           {job("3"), ".command: must be a list"},
           {job("[mpirun, a]", "slotsPerWorker: 0"), "a.yaml:5: spec.slotsPerWorker: is 0: must be a whole number"},
           {job("[mpirun, a]", "runPolicy: {backoffLimit: -1}"), "backoffLimit"}}) {
    const auto converted = convert(manifest, "a.yaml");
    ASSERT_FALSE(converted) << manifest;
    EXPECT_EQ(converted.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(converted.error().message, HasSubstr(message)) << manifest;
  }
}

std::string shell_job(std::string script, std::string_view more = "") {
  constexpr std::string_view kIndent = "\n              ";
  for (std::size_t at = 0; (at = script.find('\n', at)) != std::string::npos; at += kIndent.size())
    script.replace(at, 1, kIndent);
  return job("[bash, -c]\n            args:\n            - |\n              " + script, more);
}
TEST(Convert, ARanksShellDoesWhatTheLaunchersDid) {
  for (const auto& [script, command] : std::vector<std::pair<std::string, std::string>>{
           {"mpirun -np 2 ./a b", "- ./a\n        - b\n"},
           {"N=4\nmpirun -np $N ./a $N", "- ./a\n        - \"4\"\n"},
           {"mpirun -np 2 ./a \"$B\"", "- bash\n        - -c\n        - exec ./a \"$B\"\n"},
           {". /etc/profile && mpirun -np 2 ./a", "- . /etc/profile || exit; exec ./a\n"},
           {"mpirun -np 2 -x L=/l:$L ./a", "- export L=/l:$L; exec ./a\n"},
           {". v\nexport A=1\nmpirun -np 2 -x A ./a", "- . v; A=1; export A; exec ./a\n"},
           {"cd b && mpirun -np 2 ./a 'c d'", "- cd b || exit; exec ./a 'c d'\n"},
           {"A='x y'; mpirun -np 2 ./a $A \"$A\" $B", "- exec ./a x y 'x y' $B\n"}}) {
    const auto converted = convert(shell_job(script), "a.yaml");
    ASSERT_TRUE(converted) << script << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr(command)) << script;
  }
  const auto login = convert(job("[/bin/bash, -lc, 'mpirun -np 2 ./a $B']"), "a.yaml");
  ASSERT_TRUE(login) << login.error().message;
  EXPECT_THAT(login->yaml, HasSubstr("- /bin/bash\n        - -lc\n"));
}

TEST(Convert, WhatTheScriptExportsReachesTheRanksAsByMpirun) {
  const auto converted =
      convert(shell_job("export A=1 B=2\nexport OMPI_MCA_io=romio341 OMPI_MCA_btl=tcp\nC=3 mpirun -np 2 -x A -x C ./a"),
              "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  for (const char* entry : {"name: A\n          value: \"1\"", "name: C\n          value: \"3\"", "name: OMPI_MCA_io"})
    EXPECT_THAT(converted->yaml, HasSubstr(entry));
  EXPECT_THAT(converted->yaml, Not(HasSubstr("name: B\n")));
  EXPECT_THAT(converted->yaml, Not(HasSubstr("btl")));
  EXPECT_THAT(converted->notes,
              testing::ElementsAre(HasSubstr("B is not carried over: mpirun passes on only what -x names")));
  for (const std::string more : {"mpiImplementation: MPICH", "mpiImplementation: Intel"}) {
    const auto all = convert(shell_job("export A=1\nmpirun -n 2 ./a", more), "a.yaml");
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_THAT(all->yaml, HasSubstr("name: A\n")) << more;
  }
}

TEST(Convert, ALineOfTheScriptIsNamedWithItsField) {
  const auto converted = convert(shell_job("sleep 1\ncp a b\nmpirun -np 2 ./a"), "a.yaml");
  ASSERT_FALSE(converted);
  EXPECT_THAT(
      converted.error().message,
      HasSubstr("a.yaml:14: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].args: line 2 of its script "
                "runs \"cp\": do it in the image"));
}

TEST(Convert, AListIsConvertedItemByItem) {
  const std::string good = job("[mpirun, ./a]");
  std::string list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n-";
  for (std::size_t begin = 0; begin < good.size();) {
    const std::size_t end = good.find('\n', begin) + 1;
    list += (begin == 0 ? " " : "  ") + good.substr(begin, end - begin);
    begin = end;
  }
  const auto converted = convert(list, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml,
              testing::StartsWith("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n---\napiVersion: migbsp.io"));
  list.replace(list.find("replicas: 2"), 11, "replicas: 0");
  const auto wrong = convert(list, "a.yaml");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("a.yaml:19: items[1].spec.mpiReplicaSpecs.Worker.replicas: is 0"));
}

// The user has the MPIJob before him, not what was made of it.
TEST(Convert, WhatIsWrongWithTheResultNamesTheMpiJobsField) {
  const auto named = [](std::string manifest, const std::string& from, const std::string& to) {
    manifest.replace(manifest.find(from), from.size(), to);
    const auto converted = convert(manifest, "a.yaml");
    return converted ? "converted" : converted.error().message;
  };
  const std::string good = job("[mpirun, ./a]");
  EXPECT_THAT(
      named(good, "          - {name: w", "          - {imagePullPolicy: 3, name: w"),
      testing::StartsWith("a.yaml:19: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].imagePullPolicy: "));
  EXPECT_THAT(named(good, "{name: a}", "{name: A_}"), HasSubstr("a.yaml:3: metadata.name: \"A_\" must be"));
  EXPECT_THAT(named(good, "{name: a}", "{}"), HasSubstr("a.yaml:3: metadata.name: is required"));
  EXPECT_THAT(named(job("[mpirun, ./a]", "cleanPodPolicy: Some"), "2", "2"),
              HasSubstr("a.yaml:5: spec.cleanPodPolicy: \"Some\" is not one of"));
  EXPECT_THAT(
      named(job("[mpirun, -np, '99999999', ./a]"), "2", "2"),
      HasSubstr(
          "a.yaml:13: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command: the BSPJob's spec.ranks"));
}

TEST(Convert, ResourcesAreSharedByAsManyRanksAsAWorkerRuns) {
  for (const auto& [options, more, share] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"-np, '8'", "slotsPerWorker: 1", "cpu: \"4\""},
                                                                      {"-np, '8'", "slotsPerWorker: 8", "cpu: \"2\""},
                                                                      {"-np, '3'", "slotsPerWorker: 1", "cpu: \"8\""},
                                                                      {"-np, '2'", "slotsPerWorker: 1", "cpu: 16"}}) {
    const auto converted = convert(
        with_worker(job("[mpirun, " + options + ", ./a]", more), "{name: w, image: i, resources: {limits: {cpu: 16}}}"),
        "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr(share)) << options << more;
  }
}

TEST(Convert, RanksWithoutTheirNumber) {
  for (const auto& [command, more, ranks] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"[mpirun, ./a]", "runLauncherAsWorker: true", "ranks: 3"},
           {"[mpirun, -N, '2', ./a]", "runLauncherAsWorker: true", "ranks: 6"},
           {"[mpirun, ./a]", "runLauncherAsWorker: false", "ranks: 2"},
           {"[mpirun, -host, 'x,y,z', ./a]", "slotsPerWorker: 4", "ranks: 3"},
           {"[mpirun, -host, 'x:2,y:3', ./a]", "slotsPerWorker: 4", "ranks: 5"},
           {"[mpirun, -host, 'x,y,z', -N, '2', ./a]", "slotsPerWorker: 4", "ranks: 6"},
           {"[mpirun, -pernode, ./a]", "slotsPerWorker: 4", "ranks: 2"},
           {"[mpirun, -np, '7', -host, 'a:*', ./a]", "slotsPerWorker: 4", "ranks: 7"}}) {
    const auto converted = convert(job(command, more), "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr(ranks)) << command << more;
  }
  for (const std::string option :
       {"-host, 'a:*'", "--map-by, 'ppr:2:socket'", "--hostfile, /own", "-N, '2', -machinefile, /own"}) {
    const auto converted = convert(job("[mpirun, " + option + ", ./a]"), "a.yaml");
    ASSERT_FALSE(converted) << option;
    EXPECT_THAT(converted.error().message,
                HasSubstr("leaves open how many ranks there are: write -np and their number"));
  }
}

TEST(Convert, TheContainersVariablesAreFilledInWhereANumberMustBe) {
  std::string manifest = job("[mpirun, -np, $(N), --timeout, $(T), ./a, $(N)]");
  manifest.insert(manifest.find("    Worker:"), "            env: [{name: N, value: '6'}, {name: T, value: '30'}]\n");
  const auto converted = convert(manifest, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  for (const char* part : {"ranks: 6", "activeDeadlineSeconds: 30", "- $(N)\n", "name: \"N\"\n"})
    EXPECT_THAT(converted->yaml, HasSubstr(part));
}

TEST(Convert, DirectoriesAreThoseOfMpirun) {
  const auto at = [](const std::string& script, const std::string& own) {
    std::string manifest = shell_job(script);
    if (!own.empty()) manifest.insert(manifest.find("            command:"), "            workingDir: " + own + "\n");
    const auto converted = convert(manifest, "a.yaml");
    return converted ? converted->yaml : converted.error().message;
  };
  EXPECT_THAT(at("mpirun ./a", "/o"), HasSubstr("workingDir: /o\n"));
  EXPECT_THAT(at("cd /b; mpirun ./a", "/o"), HasSubstr("workingDir: /b\n"));
  EXPECT_THAT(at("mpirun --wdir c ./a", "/o"), HasSubstr("workingDir: /o/c\n"));
  EXPECT_THAT(at("cd /b; mpirun --wdir c ./a", "/o"), HasSubstr("workingDir: /b/c\n"));
  EXPECT_THAT(at("cd /b; mpirun --wdir /c ./a", ""), HasSubstr("workingDir: /c\n"));
  EXPECT_THAT(at("cd b; mpirun --wdir /c ./a", ""), HasSubstr("- cd b; cd /c || exit; exec ./a\n"));
  EXPECT_THAT(at("mpirun --wdir c ./a", ""), HasSubstr("--wdir is \"c\": write it from / on"));
}

TEST(Convert, TimeoutIsADeadline) {
  for (const auto& [command, deadline] : std::vector<std::pair<std::string, std::string>>{
           {"[timeout, '90', mpirun, ./a]", "activeDeadlineSeconds: 90"},
           {"[bash, -c, timeout -k 5 1.5h mpirun ./a]", "activeDeadlineSeconds: 5400"},
           {"[timeout, 2m, mpirun, --timeout, '60', ./a]", "activeDeadlineSeconds: 60"}}) {
    const auto converted = convert(job(command), "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->yaml, HasSubstr(deadline)) << command;
  }
  EXPECT_THAT(convert(job("[timeout, soon, mpirun, ./a]"), "a.yaml").error().message, HasSubstr("timeout is \"soon\""));
}

TEST(Convert, OldManifestsWriteTypesInLowerCase) {
  std::string manifest = job("[mpirun, ./a]");
  manifest.replace(manifest.find("Launcher"), 8, "launcher");
  manifest.replace(manifest.find("Worker"), 6, "worker");
  const auto converted = convert(manifest, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("ranks: 2"));
  manifest.replace(manifest.find("replicas: 2"), 11, "replicas: x");
  EXPECT_THAT(convert(manifest, "a.yaml").error().message,
              HasSubstr("a.yaml:15: spec.mpiReplicaSpecs.worker.replicas"));
}

TEST(Convert, AGeneratedNameBecomesOne) {
  std::string manifest = job("[mpirun, ./a]");
  manifest.replace(manifest.find("{name: a}"), 9, "{generateName: pi-}");
  const auto converted = convert(manifest, "a.yaml");
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->yaml, HasSubstr("name: pi\n"));
  EXPECT_THAT(converted->notes, testing::ElementsAre(HasSubstr("metadata.generateName")));
}

TEST(Convert, WhatIsLostIsNamed) {
  const std::string shell = "            command: [mpirun, ./a]";
  for (const auto& [where, text, note] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"  mpiReplicaSpecs", "  queue: fast\n", "spec.queue: not carried over: no field of an MPIJob"},
           {"  mpiReplicaSpecs", "  runPolicy: {schedulerName: v}\n", "spec.runPolicy.schedulerName: not carried over"},
           {"          containers:\n          - name: l", "          affinity: {}\n",
            "Launcher.template.spec.affinity: not"},
           {"        spec:\n          containers:\n          - name: l", "        metadata: {labels: {a: b}}\n",
            "Launcher.template.metadata.labels: not"},
           {shell, "            envFrom: [{secretRef: {name: s}}]\n",
            "Launcher.template.spec.containers[0].envFrom: not"},
           {shell, "            volumeMounts: [{name: v, mountPath: /v}]\n", "containers[0].volumeMounts[0]: not"}}) {
    std::string manifest = job("[mpirun, ./a]");
    manifest.insert(manifest.find(where), text);
    const auto converted = convert(manifest, "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->notes, testing::ElementsAre(HasSubstr(note))) << text;
  }
  for (const auto& [container, note] : std::vector<std::pair<std::string, std::string>>{
           {"command: [sh, -c, 'cp /a /b && /usr/sbin/sshd -D']",
            "containers[0].command: not carried over: it runs \"cp\""},
           {"args: [./prepare]", "containers[0].args: not carried over: it runs \"./prepare\""},
           {"imagePullPolcy: Always", "containers[0].imagePullPolcy: not carried over: unknown field; did you mean"},
           {"\"a~b.c/d[0]: e\": {}", "containers[0].a~b.c/d[0]: e: not carried over: unknown field"},
           {"env: [{name: OMPI_MCA_btl, value: self}]", "env[0]: OMPI_MCA_btl is not carried over: the operator"},
           {"env: [{name: MASTER_ADDR, value: a-worker-0.a}]", "MASTER_ADDR=a-worker-0.a names a pod of the MPIJob"}}) {
    const auto converted =
        convert(with_worker(job("[mpirun, ./a]"), "{name: w, image: i, " + container + "}"), "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->notes, testing::ElementsAre(HasSubstr(note))) << container;
  }
  for (const std::string container : {"command: [/usr/sbin/sshd], args: [-De]", "command: [sleep, infinity]",
                                      "command: [bash, -c, 'mkdir -p /run/sshd; service ssh start; sleep 1d']"}) {
    const auto converted =
        convert(with_worker(job("[mpirun, ./a]"), "{name: w, image: i, " + container + "}"), "a.yaml");
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_THAT(converted->notes, testing::IsEmpty()) << container;
  }
}

// Whatever is where an object or a list should be: an error or a result, never an exception.
TEST(Convert, AnyValueInAnyPlace) {
  const std::string good = job("[mpirun, ./a]", "slotsPerWorker: 2");
  for (const std::string value : {"3", "text", "[]", "[[]]", "[3]", "{}", "{a: b}", "null"})
    for (const std::string field : {"metadata", "spec", "mpiReplicaSpecs", "Launcher", "Worker", "template",
                                    "containers", "command", "slotsPerWorker", "replicas"}) {
      std::string manifest;
      bool cut = false;
      std::size_t depth = 0;
      for (std::size_t begin = 0; begin < good.size();) {
        const std::size_t end = good.find('\n', begin) + 1;
        const std::string line = good.substr(begin, end - begin);
        begin = end;
        const std::size_t indent = line.find_first_not_of(" -");
        if (cut && indent > depth) continue;
        cut = line.substr(indent).starts_with(field + ":");
        depth = indent;
        manifest += cut ? line.substr(0, indent) + field + ": " + value + "\n" : line;
      }
      EXPECT_NO_THROW({ [[maybe_unused]] const auto converted = convert(manifest, "a.yaml"); }) << manifest;
    }
}

TEST(Convert, EveryValueAtEveryPlace) {
  const auto good = read_yaml(R"(apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: a, namespace: b, labels: {c: d}, annotations: {e: f}}
spec:
  slotsPerWorker: 2
  mainContainer: l
  mpiImplementation: OpenMPI
  runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 5, backoffLimit: 1, suspend: false, schedulingPolicy: {queue: q}, managedBy: x}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          initContainers: [{name: i, image: i}]
          volumes: [{name: v, emptyDir: {}}]
          serviceAccountName: s
          containers:
          - name: l
            image: i
            command: [env, A=1, mpirun, -x, A, -x, "", -x, B=2, --wdir, /w, ./a]
            args: [b]
            env: [{name: A, value: "1"}, {name: C, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
            workingDir: /x
            securityContext: {runAsUser: 5, runAsGroup: 6}
          - {name: beside, image: i}
    Worker:
      replicas: 2
      template:
        metadata: {labels: {g: h}}
        spec:
          restartPolicy: Never
          containers:
          - name: w
            image: i
            args: [sshd]
            env: [{name: A, value: "2"}]
            securityContext: {runAsUser: 7}
            readinessProbe: {exec: {command: [x]}}
            resources: {requests: {cpu: 3, memory: 4Gi}, limits: {nvidia.com/gpu: 2, cpu: "4"}}
)");
  ASSERT_TRUE(good);
  nlohmann::json job = good->at(0);
  int converted = 0, refused = 0;
  const auto use = [&](const nlohmann::json& changed, const auto&) {
    const auto done = convert(write_yaml(changed), "a.yaml");
    ++(done ? converted : refused);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::kInvalid) << done.error().message;
    }
  };
  job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"].erase(0);
  reconcile::hostile::at_every_place(job, use);
  EXPECT_GT(converted, 100);
  EXPECT_GT(refused, 100);
}

TEST(Convert, RanksAndSharesAreOfNumbersThatFit) {
  const auto with = [](const std::string& slots, const std::string& replicas) {
    std::string manifest = job("[mpirun, ./a]", "slotsPerWorker: " + slots);
    manifest.replace(manifest.find("replicas: 2"), 11, "replicas: " + replicas);
    const std::string container = "{name: w, image: i}";
    manifest.replace(manifest.find(container), container.size(),
                     "{name: w, image: i, resources: {requests: {cpu: 4}}}");
    return convert(manifest, "a.yaml");
  };
  EXPECT_TRUE(with("2", "3"));
  EXPECT_TRUE(with("2.0", "3"));
  // 2^32 would divide by 0, the product of the others is 2 in 64 bits.
  for (const auto& [slots, replicas] : {std::pair("4294967296", "1"), std::pair("3", "6148914691236517206")}) {
    const auto converted = with(slots, replicas);
    ASSERT_FALSE(converted) << converted->yaml;
    EXPECT_THAT(converted.error().message, HasSubstr("must be a whole number"));
  }
}

}  // namespace
}  // namespace bsp::convert
