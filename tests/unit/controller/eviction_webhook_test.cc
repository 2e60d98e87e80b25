// The webhook on evictions over real sockets, between the API server that asks and the one that it asks.
#include "operator/controller/eviction_webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/base64.h"
#include "http_get.h"
#include "https_post.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "tests/unit/controller/install_crds.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube::Object;
using kube_test::eventually;
using kube_test::Fault;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* kName = "bsp-evictions";
constexpr const char* kEvictedPod = "lbm-r1-g0";
const kube::Key kConfiguration{kValidatingWebhookConfiguration, "", kName};
const kube::Key kSeed{kSecret, "ops", "bsp-authority"};

// Of a job with two ranks on a node each.
crds::BspJob running_job(const std::string& uid) {
  crds::BspJob job;
  job.metadata.name = "lbm";
  job.metadata.name_space = "default";
  job.metadata.uid = uid;
  job.spec.ranks = 2;
  job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}, {"command", {"solver"}}}}}}}};
  job.status.phase = crds::JobPhase::kRunning;
  job.status.epochs_used = 1;
  wire::EpochPlan epoch;
  epoch.sets = {"slow"};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::string pod = reconcile::pod_name("lbm", rank, 0);
    epoch.members.push_back({rank, pod, pod + "-uid", std::format("10.0.0.{}:7600", rank + 1), 0});
    job.status.ranks.push_back({.rank = {rank},
                                .set = "slow",
                                .node = std::format("slow-{}", rank),
                                .pod = pod,
                                .generation = 1,
                                .blocked_reason = ""});
  }
  job.status.epoch = std::move(epoch);
  return job;
}

class EvictionWebhookTest : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "needs a server to which nodes can be added";
    client_ = open();
    ASSERT_NO_FATAL_FAILURE(install_crds(*client_));
    ASSERT_TRUE(client_->create(configuration()));
    json object;
    to_json(object, running_job(""));
    object["metadata"].erase("uid");
    auto created = client_->create(object);
    ASSERT_TRUE(created) << created.error().message;
    const crds::BspJob job = running_job((*created)["metadata"]["uid"]);
    to_json(object, job);
    (*created)["status"] = object["status"];
    ASSERT_TRUE(client_->update_status(*created));
    ASSERT_TRUE(client_->create(reconcile::make_disruption_budget(job, 1)));
    json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", {{"nodeName", "slow-1"}}}};
    pod["metadata"] = {
        {"name", kEvictedPod}, {"namespace", "default"}, {"ownerReferences", reconcile::owner_reference(job)}};
    const auto made = client_->create(pod);
    ASSERT_TRUE(made) << made.error().message;
    // The epoch's member is this very pod.
    crds::BspJob with_pod = job;
    with_pod.status.epoch->members[1].pod_uid = (*made)["metadata"]["uid"];
    to_json(object, with_pod);
    created = client_->get({kBspJob, "default", "lbm"});
    (*created)["status"] = object["status"];
    ASSERT_TRUE(client_->update_status(*created));
    ASSERT_TRUE(client_->create({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "slow-1"}}}}));
    ASSERT_TRUE(client_->create(secret_));  // as the leader does before a job's first pod
  }

  static json configuration() {
    return {{"apiVersion", "admissionregistration.k8s.io/v1"},
            {"kind", "ValidatingWebhookConfiguration"},
            {"metadata", {{"name", kName}}},
            {"webhooks",
             {{{"name", "evictions.migbsp.io"},
               {"clientConfig", {{"service", {{"name", kName}, {"namespace", "ops"}, {"port", 443}}}}}}}}};
  }

  std::unique_ptr<EvictionWebhook> serve(int& port) {
    for (int tries = 0; tries < 20; ++tries) {
      port = free_port();
      auto open = EvictionWebhook::open(config(), {.address = std::format("127.0.0.1:{}", port),
                                                   .name = kName,
                                                   .own_name_space = "ops",
                                                   .seed_name = "bsp-authority",
                                                   .name_space = name_space_,
                                                   .keep_every = 10ms,
                                                   .try_again = 10ms});
      if (open) return std::move(*open);
    }
    return nullptr;
  }

  // As the API server reads it.
  json client_config() { return client_->get(kConfiguration).value()["webhooks"][0]["clientConfig"]; }
  std::string ca() { return base64_decode(client_config().value("caBundle", "")).value_or(""); }
  std::string path() { return client_config()["service"].value("path", ""); }

  static std::string review(const std::string& pod = kEvictedPod, bool dry_run = false) {
    return json{{"apiVersion", "admission.k8s.io/v1"},
                {"kind", "AdmissionReview"},
                {"request",
                 {{"uid", "u-1"},
                  {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                  {"subResource", "eviction"},
                  {"operation", "CREATE"},
                  {"name", pod},
                  {"namespace", "default"},
                  {"dryRun", dry_run}}}}
        .dump();
  }
  std::string ask(int port, const std::string& body) {
    std::string answer;
    // The configuration is written before the first question that can be answered.
    eventually([&] {
      const std::string bundle = ca();
      if (!bundle.empty()) answer = https_post(port, bundle, path(), body);
      return !answer.empty();
    });
    return answer;
  }
  json answer_to(int port, const std::string& body) {
    const std::string answer = ask(port, body);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    const std::size_t head = answer.find("\r\n\r\n");
    return json::parse(head == std::string::npos ? "" : answer.substr(head + 4), nullptr, false);
  }
  std::vector<Object> migrations() { return client_->list(kRankMigration, "default").value(); }

  std::string name_space_;
  const Object secret_ = {{"apiVersion", "v1"},
                          {"kind", "Secret"},
                          {"metadata", {{"name", kSeed.name}, {"namespace", kSeed.name_space}}},
                          {"data", {{"seed", base64_encode(net::new_seed().value())}}}};
  std::unique_ptr<kube::ApiClient> client_;
};

TEST_F(EvictionWebhookTest, AnEvictionOfARanksPodAsksTheRankToMove) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  const json dry = answer_to(port, review(kEvictedPod, true));
  EXPECT_EQ(dry["response"]["status"]["code"], 429) << dry;
  EXPECT_TRUE(migrations().empty()) << "a dry run";
  const json answer = answer_to(port, review());
  EXPECT_EQ(answer["response"]["uid"], "u-1");
  EXPECT_EQ(answer["response"]["allowed"], false);
  EXPECT_EQ(answer["response"]["status"]["code"], 429);
  EXPECT_THAT(answer["response"]["status"]["message"].get<std::string>(),
              StartsWith("rank 1 is asked to leave node slow-1 (RankMigration lbm-r1-"));
  ASSERT_EQ(migrations().size(), 1u);
  const json migration = migrations()[0];
  EXPECT_EQ(migration["spec"]["rank"], 1);
  EXPECT_EQ(migration["spec"]["targetNode"], "*");
  EXPECT_EQ(migration["metadata"]["ownerReferences"][0]["name"], "lbm");
  const json again = answer_to(port, review());
  EXPECT_THAT(again["response"]["status"]["message"].get<std::string>(), StartsWith("rank 1 is to leave node slow-1"));
  EXPECT_EQ(migrations().size(), 1u);
  EXPECT_EQ(answer_to(port, review("lbm-r7-g0"))["response"], (json{{"uid", "u-1"}, {"allowed", true}}));
}

TEST_F(EvictionWebhookTest, OfAnotherNamespaceIsAllowed) {
  name_space_ = "science";
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  EXPECT_EQ(answer_to(port, review())["response"]["allowed"], true);
  EXPECT_TRUE(migrations().empty());
}

TEST_F(EvictionWebhookTest, EveryReplicaIsTrustedByTheSameConfiguration) {
  int port = 0, other = 0;
  const auto one = serve(port);
  ASSERT_TRUE(one);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  const std::string version = client_->get(kConfiguration).value()["metadata"]["resourceVersion"];
  const auto two = serve(other);
  ASSERT_TRUE(two);
  EXPECT_TRUE(eventually([&] { return https_post(other, ca(), path(), review("x")).starts_with("HTTP/1.1 200"); }));
  const std::string read = "GET /apis/admissionregistration.k8s.io";
  ASSERT_TRUE(server_.wait_for_requests(read, server_.requests(read) + 10));
  EXPECT_EQ(client_->get(kConfiguration).value()["metadata"]["resourceVersion"], version) << "neither writes it again";
}

TEST_F(EvictionWebhookTest, TheConfigurationIsPutRightAgain) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  const std::string right = path();
  const auto is_right = [&] {
    return eventually([&] {
      const std::string bundle = ca();
      return !bundle.empty() && path() == right &&
             https_post(port, bundle, right, review("x")).starts_with("HTTP/1.1 200");
    });
  };
  const json changes[] = {{{"caBundle", nullptr}},
                          {{"caBundle", "no base 64"}},
                          {{"caBundle", base64_encode("no certificate")}},
                          {{"caBundle", base64_encode(kube_test::Pki::get().ca.certificate)}},
                          {{"service", {{"path", "/elsewhere"}}}}};
  for (const json& change : changes) {
    Object object = client_->get(kConfiguration).value();
    object["webhooks"][0]["clientConfig"].merge_patch(change);
    ASSERT_TRUE(client_->update(object));
    EXPECT_TRUE(is_right()) << change;
  }
  ASSERT_TRUE(client_->remove(kConfiguration, ""));
  ASSERT_TRUE(client_->create(configuration()));
  EXPECT_TRUE(is_right()) << "made anew";
}

// The leader has it in its memory, and every job's certificates are of it.
TEST_F(EvictionWebhookTest, LeavesALostSeedToTheLeader) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  const std::string before = path();
  ASSERT_TRUE(client_->remove(kSeed, ""));
  const std::string reads = "GET /api/v1/namespaces/ops/secrets";
  ASSERT_TRUE(server_.wait_for_requests(reads, server_.requests(reads) + 10));
  EXPECT_FALSE(client_->get(kSeed)) << "made by the webhook";
  EXPECT_EQ(path(), before);
  EXPECT_THAT(https_post(port, ca(), before, review("x")), StartsWith("HTTP/1.1 200")) << "it answers as before";
  ASSERT_TRUE(client_->create(secret_));
  ASSERT_TRUE(server_.wait_for_requests(reads, server_.requests(reads) + 10));
  EXPECT_EQ(path(), before);
}

TEST_F(EvictionWebhookTest, WaitsForTheFirstSeed) {
  ASSERT_TRUE(client_->remove(kSeed, ""));
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_TRUE(server_.wait_for_requests("GET /api/v1/namespaces/ops/secrets", 10));
  EXPECT_EQ(path(), "") << "nobody's";
  ASSERT_TRUE(client_->create(secret_));
  EXPECT_EQ(answer_to(port, review())["response"]["allowed"], false);
}

TEST_F(EvictionWebhookTest, FollowsASeedThatWasReplaced) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  const std::string before = path(), trusted_before = ca();
  Object secret = client_->get(kSeed).value();
  secret["data"]["seed"] = base64_encode(net::new_seed().value());
  ASSERT_TRUE(client_->update(secret));
  ASSERT_TRUE(eventually([&] { return path() != before; }));
  EXPECT_TRUE(eventually([&] { return https_post(port, ca(), path(), review("x")).starts_with("HTTP/1.1 200"); }));
  EXPECT_THAT(https_post(port, ca(), before, review()), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(https_post(port, trusted_before, path(), review("x")), "") << "the former CA does not vouch for it";
}

TEST_F(EvictionWebhookTest, WhoeverDoesNotKnowThePathMovesNoRank) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(path(), testing::SizeIs(33));
  for (const std::string& guess : {std::string("/"), std::string("/evictions"), path() + "0", path().substr(0, 32)})
    EXPECT_THAT(https_post(port, ca(), guess, review()), StartsWith("HTTP/1.1 404")) << guess;
  EXPECT_TRUE(migrations().empty());
}

TEST_F(EvictionWebhookTest, WhatIsNoQuestionIsRefused) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  EXPECT_THAT(ask(port, "{}"), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("must be an AdmissionReview")));
  EXPECT_THAT(ask(port, "no JSON"), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("not valid JSON")));
  EXPECT_THAT(ask(port, std::string(200 << 10, ' ')), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("131072 bytes")));
}

TEST_F(EvictionWebhookTest, WhereItCannotAskItDoesNotAnswer) {
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_THAT(ask(port, review("x")), StartsWith("HTTP/1.1 200"));
  const std::string refusal = R"({"kind": "Status", "status": "Failure", "code": 403, "message": "not yours"})";
  server_.inject({.match = "/pods/", .status = 403, .body = refusal});
  EXPECT_THAT(ask(port, review()), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("not yours")));
  server_.inject(
      {.match = "POST /apis/migbsp.io/v1alpha1/namespaces/default/rankmigrations", .status = 403, .body = refusal});
  EXPECT_THAT(ask(port, review()), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("not yours")));
  EXPECT_TRUE(migrations().empty());
  EXPECT_EQ(answer_to(port, review())["response"]["allowed"], false);
  EXPECT_EQ(migrations().size(), 1u);
}

TEST_F(EvictionWebhookTest, IsThereAsSoonAsItsConfigurationIs) {
  ASSERT_TRUE(client_->remove(kConfiguration, ""));
  int port = 0;
  const auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_TRUE(server_.wait_for_requests("GET /apis/admissionregistration.k8s.io/v1/validatingwebhook", 3))
      << "it goes on";
  ASSERT_TRUE(client_->create(configuration()));
  EXPECT_EQ(answer_to(port, review())["response"]["allowed"], false);
}

TEST_F(EvictionWebhookTest, EndsWhileTheApiServerHangs) {
  server_.inject({.match = "GET /api/v1/namespaces/ops/secrets", .what = Fault::kStall, .times = 1'000'000});
  int port = 0;
  auto webhook = serve(port);
  ASSERT_TRUE(webhook);
  ASSERT_TRUE(server_.wait_for_requests("GET /api/v1/namespaces/ops/secrets", 1));
  webhook.reset();
  EXPECT_EQ(http_get(port, "/"), "") << "the port is closed";
}

}  // namespace
}  // namespace bsp::controller
