// The pods of jobs that make checkpoint sets: who reaches the storage, and has its keys.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/reconcile/kernel/checkpoints/skew.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

crds::BspJob job_with_claim() {
  World w;
  w.job.spec.checkpoint.storage.emplace();
  w.job.spec.checkpoint.storage->persistent_volume_claim = crds::ClaimSource{"sets"};
  return w.job;
}

TEST(CheckpointPods, OnlyTheSidecarReachesTheStorage) {
  const nlohmann::json pod = make_pod(job_with_claim(), {.resumes = true}, {});
  std::vector<std::string> mounting;
  for (const char* list : {"containers", "initContainers"})
    for (const auto& container : pod["spec"][list]) {
      const std::string text = container.dump();
      if (text.contains("bsp-sets")) mounting.push_back(container["name"]);
      EXPECT_EQ(text.contains("BSP_STORAGE"), container["name"] == "sidecar");
    }
  EXPECT_EQ(mounting, std::vector<std::string>{"sidecar"});
  EXPECT_TRUE(pod["spec"]["volumes"].dump().contains(R"({"claimName":"sets"})"));
  EXPECT_TRUE(pod["spec"]["containers"][0]["command"].dump().contains("--restore"));
  EXPECT_EQ(pod["metadata"]["labels"]["migbsp.io/role"], "rank");
  EXPECT_FALSE(pod["spec"]["containers"][0].dump().contains("BSP_GROUPS")) << "the storage's group isn't the program's";
  EXPECT_FALSE(make_pod(World().job, {}, {}).dump().contains("bsp-sets"));
}

TEST(CheckpointPods, OnlyTheSidecarHasTheKeyOfAnExportedSet) {
  crds::BspJob job = job_with_claim();
  EXPECT_FALSE(make_pod(job, {.resumes = true}, {}).dump().contains("set-key"));
  job.spec.restore_from = crds::RestoreFrom{.exported = "a set", .key_secret = "lbm-set-7"};
  const nlohmann::json pod = make_pod(job, {.resumes = true}, {});
  for (const char* list : {"containers", "initContainers"})
    for (const auto& container : pod["spec"][list])
      EXPECT_EQ(container.dump().contains("set-key"), container["name"] == "sidecar") << container;
  EXPECT_TRUE(pod["spec"]["initContainers"][0]["volumeMounts"].dump().contains(
      R"({"mountPath":"/run/bsp-set-key","name":"bsp-set-key","readOnly":true})"));
  EXPECT_TRUE(pod["spec"]["volumes"].dump().contains(
      R"({"name":"bsp-set-key","secret":{"defaultMode":292,"secretName":"lbm-set-7"}})"));
}

// The operator names the Secrets, and reads none.
TEST(CheckpointPods, OnlyTheSidecarHasTheKeysOfABucket) {
  World w;
  w.job.spec.checkpoint.storage.emplace();
  w.job.spec.checkpoint.storage->s3 = crds::S3Source{.endpoint = "https://minio:9000",
                                                     .bucket = "sets",
                                                     .prefix = "team",
                                                     .credentials_secret = "bucket-keys",
                                                     .ca_secret = "bucket-ca"};
  const nlohmann::json pod = make_pod(w.job, {.resumes = true}, {});
  for (const char* list : {"containers", "initContainers"})
    for (const auto& container : pod["spec"][list]) {
      const std::string text = container.dump();
      for (const char* what : {"bsp-sets", "BSP_STORAGE", "/run/bsp-s3"})
        EXPECT_EQ(text.contains(what), container["name"] == "sidecar") << what;
    }
  const nlohmann::json& sidecar = pod["spec"]["initContainers"][0];
  const auto value = [&](const std::string& name) {
    for (const auto& variable : sidecar["env"])
      if (variable["name"] == name) return variable["value"].get<std::string>();
    return std::string("none");
  };
  EXPECT_EQ(value("BSP_STORAGE"), "s3://sets/team");
  EXPECT_EQ(value("BSP_STORAGE_ENDPOINT"), "https://minio:9000");
  EXPECT_EQ(value("BSP_STORAGE_REGION"), "us-east-1");
  EXPECT_EQ(value("BSP_STORAGE_CA"), "/run/bsp-s3-ca/ca.crt");
  for (const char* mount : {R"({"mountPath":"/run/bsp-s3","name":"bsp-sets","readOnly":true})",
                            R"({"mountPath":"/run/bsp-s3-ca","name":"bsp-sets-ca","readOnly":true})"})
    EXPECT_TRUE(sidecar["volumeMounts"].dump().contains(mount)) << sidecar["volumeMounts"];
  for (const char* volume : {R"({"name":"bsp-sets","secret":{"defaultMode":292,"secretName":"bucket-keys"}})",
                             R"({"name":"bsp-sets-ca","secret":{"defaultMode":292,"secretName":"bucket-ca"}})"})
    EXPECT_TRUE(pod["spec"]["volumes"].dump().contains(volume)) << pod["spec"]["volumes"];
  EXPECT_FALSE(pod["spec"].contains("securityContext")) << "no volume that a group would have to write";
  EXPECT_EQ(account_of(pod), "user of the image") << "a set of it knows its account";

  w.job.spec.checkpoint.storage->s3->ca_secret.clear();
  w.job.spec.checkpoint.storage->s3->prefix.clear();
  const std::string plain = make_pod(w.job, {}, {}).dump();
  EXPECT_TRUE(plain.contains(R"("value":"s3://sets"})"));
  EXPECT_FALSE(plain.contains("bsp-sets-ca"));
  EXPECT_FALSE(plain.contains("BSP_STORAGE_CA"));
}

// The kubelet gives every volume of the pod to that group, so not where the user has claims of their own.
TEST(CheckpointPods, AClaimIsWritableForTheSidecar) {
  crds::BspJob job = job_with_claim();
  EXPECT_EQ(make_pod(job, {}, {})["spec"]["securityContext"]["fsGroup"], 64600);
  job.spec.pod_template["spec"]["securityContext"]["fsGroup"] = 5;
  EXPECT_EQ(make_pod(job, {}, {})["spec"]["securityContext"]["fsGroup"], 5);
  job = job_with_claim();
  job.spec.pod_template["spec"]["volumes"] = {{{"name", "own"}, {"persistentVolumeClaim", {{"claimName", "own"}}}}};
  EXPECT_FALSE(make_pod(job, {}, {})["spec"].contains("securityContext"));
}

}  // namespace
}  // namespace bsp::reconcile::sim
