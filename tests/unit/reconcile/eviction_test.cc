// An eviction of a rank's pod asks for the rank to leave its node.
#include "operator/reconcile/kernel/eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/drain.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json a_review(const std::string& pod = "job-r0-g0") {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "705ab4f5-6393-11e8-b7cc-42010a800002"},
            {"kind", {{"group", "policy"}, {"version", "v1"}, {"kind", "Eviction"}}},
            {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
            {"subResource", "eviction"},
            {"name", pod},
            {"namespace", "default"},
            {"operation", "CREATE"},
            {"userInfo", {{"username", "admin"}, {"groups", {"system:authenticated"}}}},
            {"object",
             {{"apiVersion", "policy/v1"},
              {"kind", "Eviction"},
              {"metadata", {{"name", pod}, {"namespace", "default"}}},
              {"deleteOptions", {{"preconditions", {{"uid", "of a pod"}}}, {"dryRun", {"All"}}}}}},
            {"oldObject", nullptr},
            {"dryRun", false},
            {"options", {{"kind", "CreateOptions"}, {"apiVersion", "meta.k8s.io/v1"}}}}}};
}

class EvictionTest : public testing::Test {
 protected:
  EvictionTest() : w({.ranks = 2, .slow = 3, .fast = 0}) { w.job.spec.sets.names = {"slow"}; }

  void SetUp() override { ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace; }

  EvictionReview review(std::uint32_t rank = 0) {
    return {.uid = "u", .name_space = "default", .pod = w.job.status.ranks[rank].pod, .pod_uid = "", .dry_run = false};
  }
  EvictionFacts facts(std::uint32_t rank = 0) {
    EvictionFacts f;
    const std::string& name = w.job.status.ranks[rank].pod;
    const std::string& node = w.job.status.ranks[rank].node;
    f.pod = {{"metadata",
              {{"name", name},
               {"uid", w.job.status.epoch->members[rank].pod_uid},
               {"ownerReferences", owner_reference(w.job)}}},
             {"spec", {{"nodeName", node}}}};
    to_json(f.job, w.job);
    f.budget = make_disruption_budget(w.job, 1);
    f.node = {{"metadata", {{"name", node}}}, {"spec", {{"unschedulable", w.cordons.contains(node)}}}};
    for (const auto& [name_of, m] : w.migrations) to_json(f.migrations.emplace_back(), m);
    f.now = w.now;
    return f;
  }
  EvictionAnswer evict(std::uint32_t rank = 0) { return answer_eviction(review(rank), facts(rank)); }
  void create(const crds::RankMigration& m) {
    json object;
    to_json(object, m);
    crds::RankMigration stored = crds::rank_migration_from_json(object).value();
    stored.metadata.uid = m.metadata.name + "-uid";
    w.migrations[m.metadata.name] = stored;
  }

  World w;
};

TEST_F(EvictionTest, MovesTheRankToAnotherNode) {
  const std::string node = w.job.status.ranks[0].node, pod = w.job.status.ranks[0].pod;
  const EvictionAnswer answer = evict();
  ASSERT_FALSE(answer.allowed) << answer.message;
  ASSERT_FALSE(answer.ask.empty());
  EXPECT_EQ(answer.message,
            std::format("rank 0 is asked to leave node {} (RankMigration {}); its pod goes once it runs "
                        "elsewhere",
                        node, answer.ask[0].metadata.name));
  EXPECT_EQ(answer.ask[0].spec.target_node, crds::kAnyOtherNode);
  EXPECT_EQ(answer.ask[0].metadata.owner_references, owner_reference(w.job));
  EXPECT_EQ(evict().ask[0].metadata.name, answer.ask[0].metadata.name) << "two at the same moment make one";
  create(answer.ask[0]);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_NE(w.job.status.ranks[0].node, node);
  EXPECT_EQ(w.migrations.size(), 1u);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EvictionReview of_the_former = review();
  of_the_former.pod = pod;
  EXPECT_EQ(answer_eviction(of_the_former, facts()).message, "no rank runs in the pod now");
  EXPECT_TRUE(answer_eviction(of_the_former, facts()).allowed);
  EXPECT_FALSE(evict().ask.empty()) << "the rank's new pod may be asked to leave its node as well";
}

TEST_F(EvictionTest, OfARankOnItsWayMakesNoOtherRequest) {
  create(evict().ask[0]);
  const EvictionAnswer waiting = evict();
  EXPECT_FALSE(waiting.allowed || !waiting.ask.empty());
  EXPECT_THAT(waiting.message, HasSubstr("rank 0 is to leave node slow-0 (RankMigration job-r0-"));
  EXPECT_FALSE(evict(1).ask.empty()) << "another rank";
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing)) << w.trace;
  EvictionFacts before_it_is_written = facts();
  before_it_is_written.migrations.clear();
  const EvictionAnswer moving = answer_eviction(review(), before_it_is_written);
  EXPECT_FALSE(moving.allowed || !moving.ask.empty());
  EXPECT_THAT(moving.message, StartsWith("rank 0 is moving from node slow-0 to node slow-2 (RankMigration job-r0-"));
}

TEST_F(EvictionTest, SaysWhyTheRankCannotLeaveYet) {
  w.cordon("slow-2");
  create(evict().ask[0]);
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_THAT(evict().message, HasSubstr("no other node of the job's Sets has a free slot"));
}

TEST_F(EvictionTest, AfterARollbackWaitsBeforeItAsksAgain) {
  crds::RankMigration m = evict().ask[0];
  m.status.phase = crds::MigrationPhase::kRolledBack;
  m.status.message = "the target did not start";
  m.status.completion_time = w.now - std::chrono::seconds(5);
  create(m);
  EXPECT_FALSE(evict().allowed || !evict().ask.empty());
  EXPECT_THAT(evict().message, HasSubstr("the target did not start); it can be asked again in 10 s"));
  m.status.completion_time = w.now - std::chrono::seconds(16);
  create(m);
  ASSERT_FALSE(evict().ask.empty());
  EXPECT_NE(evict().ask[0].metadata.name, m.metadata.name);
}

TEST_F(EvictionTest, IgnoresRequestsOfAnEarlierJobOfThisName) {
  crds::RankMigration m = evict().ask[0];
  m.metadata.owner_references[0]["uid"] = "earlier";
  create(m);
  EXPECT_FALSE(evict().ask.empty());
}

TEST_F(EvictionTest, OnANodeThatIsDrainedMakesNoRequest) {
  w.cordon("slow-0");
  EXPECT_EQ(evict().message, "node slow-0 is cordoned, and rank 0 must leave it");
  EXPECT_FALSE(evict().allowed || !evict().ask.empty());
  w.cordon("slow-2");
  ASSERT_TRUE(w.run_until([&] { return w.has_event("NowhereToGo"); })) << w.trace;
  EXPECT_THAT(evict().message, HasSubstr("600 s after the drain began its pod may be evicted"));
}

TEST_F(EvictionTest, IsAllowedWhereNoRankHasToBeSaved) {
  const auto allowed = [&](auto change) {
    EvictionReview r = review();
    EvictionFacts f = facts();
    change(r, f);
    const EvictionAnswer answer = answer_eviction(r, f);
    EXPECT_TRUE(answer.ask.empty()) << answer.message;
    return answer.allowed ? answer.message : "refused: " + answer.message;
  };
  const auto with_job = [&](auto change) {
    return allowed([&](auto&, EvictionFacts& f) {
      crds::BspJob job = w.job;
      change(job);
      f.job = json();
      to_json(f.job, job);
    });
  };
  EXPECT_EQ(allowed([](auto&, auto& f) { f.pod = nullptr; }), "there is no such pod");
  EXPECT_EQ(allowed([](auto& r, auto&) { r.pod_uid = "another"; }), "the eviction is of an earlier pod");
  EXPECT_EQ(allowed([](auto&, auto& f) { f.pod["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z"; }),
            "the pod is being deleted already");
  EXPECT_EQ(allowed([](auto&, auto& f) { f.job = nullptr; }), "the pod belongs to no BSPJob");
  EXPECT_EQ(allowed([](auto&, auto& f) { f.pod["metadata"].erase("ownerReferences"); }), "the pod belongs to no BSPJob")
      << "a label makes no rank";
  EXPECT_EQ(allowed([](auto&, auto& f) { f.pod["metadata"]["uid"] = "impostor"; }), "no rank runs in the pod now");
  EXPECT_EQ(allowed([](auto&, auto& f) { f.budget = nullptr; }), "its job lets its pods be evicted");
  EXPECT_EQ(with_job([](auto& job) { job.metadata.deletion_timestamp = job.status.start_time; }),
            "its job is being deleted");
  EXPECT_EQ(with_job([](auto& job) { job.status.phase = JobPhase::kSucceeded; }), "its job is Succeeded");
  EXPECT_EQ(with_job([](auto& job) { job.status.phase = JobPhase::kStarting; }), "its job is Starting");
  EXPECT_THAT(with_job([](auto& job) { job.status.ranks.resize(1); }), StartsWith("status.ranks: "));
}

TEST_F(EvictionTest, InADryRunOnlySaysWhatItWouldDo) {
  EvictionReview r = review();
  r.dry_run = true;
  const EvictionAnswer answer = answer_eviction(r, facts());
  EXPECT_FALSE(answer.allowed);
  EXPECT_THAT(answer.message, StartsWith("rank 0 would be asked to leave node slow-0"));
}

TEST_F(EvictionTest, EveryTypeAtEveryPlaceOfWhatItReads) {
  crds::RankMigration old = evict().ask[0];
  old.status.phase = crds::MigrationPhase::kRolledBack;
  old.status.completion_time = w.now;
  create(old);
  const EvictionFacts good = facts();
  int answered = 0;
  const auto with = [&](const json& document, auto put) {
    hostile::at_every_place(document, [&](const json& changed, const auto&) {
      EvictionFacts f = good;
      put(f, changed);
      (void)to_review(review(), answer_eviction(review(), f)).dump();
      ++answered;
    });
  };
  with(good.pod, [](auto& f, const json& changed) { f.pod = changed; });
  with(good.job, [](auto& f, const json& changed) { f.job = changed; });
  with(good.budget, [](auto& f, const json& changed) { f.budget = changed; });
  with(good.node, [](auto& f, const json& changed) { f.node = changed; });
  with(good.migrations[0], [](auto& f, const json& changed) { f.migrations[0] = changed; });
  EXPECT_GT(answered, 1000);
}

TEST(EvictionReviews, AreRead) {
  const auto r = eviction_review_from(a_review().dump());
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->uid, "705ab4f5-6393-11e8-b7cc-42010a800002");
  EXPECT_EQ(r->name_space + "/" + r->pod, "default/job-r0-g0");
  EXPECT_EQ(r->pod_uid, "of a pod");
  EXPECT_TRUE(r->dry_run) << "the eviction says so";
  json review = a_review();
  review["request"]["object"]["deleteOptions"] = nullptr;
  EXPECT_FALSE(eviction_review_from(review.dump())->dry_run);
  review["request"]["dryRun"] = true;
  EXPECT_TRUE(eviction_review_from(review.dump())->dry_run);
}

TEST(EvictionReviews, ThatAreNoneAreRefusedWithTheField) {
  const auto error = [](const json& review) {
    const auto r = eviction_review_from(review.is_string() ? review.get<std::string>() : review.dump());
    if (r) return std::string("read");
    EXPECT_EQ(r.error().code, ErrorCode::kInvalid);
    return r.error().message;
  };
  EXPECT_EQ(error(""), "not valid JSON");
  EXPECT_EQ(error("{\"kind\": \"Admis"), "not valid JSON");
  EXPECT_EQ(error(json::array()), "the body must be an AdmissionReview of admission.k8s.io/v1");
  EXPECT_THAT(error(std::string(kReviewBytes + 1, ' ')), HasSubstr("more than the limit"));
  EXPECT_THAT(error(std::string(1000, '[')), HasSubstr("levels"));
  for (const char* name : {"uid", "namespace", "name"}) {
    json review = a_review();
    review["request"].erase(name);
    EXPECT_EQ(error(review), std::format("request.{}: must be a string that is not empty", name));
  }
  json review = a_review();
  review["request"]["subResource"] = "binding";
  EXPECT_EQ(error(review), "request.resource: only CREATE of pods/eviction is answered here");
}

TEST(EvictionReviews, WithEveryTypeAtEveryPlaceAreReadOrRefused) {
  int read = 0, refused = 0;
  hostile::at_every_place(a_review(), [&](const json& changed, const auto& path) {
    const auto r = eviction_review_from(changed.dump());
    if (!r) {
      ++refused;
      EXPECT_EQ(r.error().code, ErrorCode::kInvalid) << path.to_string();
    } else {
      ++read;
      EXPECT_FALSE(r->uid.empty() || r->name_space.empty() || r->pod.empty()) << path.to_string();
    }
  });
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

TEST(EvictionReviews, AreAnsweredAsTheApiServerReadsIt) {
  const EvictionReview r{.uid = "u", .name_space = "n", .pod = "p", .pod_uid = "", .dry_run = false};
  EXPECT_EQ(to_review(r, {}), json::parse(R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
      "response": {"uid": "u", "allowed": true}})"));
  EXPECT_EQ(to_review(r, {.allowed = false, .message = "it moves", .ask = {}}).at("response"),
            json::parse(R"({"uid": "u",
      "allowed": false, "status": {"status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "it moves"}})"));
}

}  // namespace
}  // namespace bsp::reconcile::sim
