// Evictions that the API server keeps: the operator moves the rank and says how far it is, by the API's rules.
#include "operator/reconcile/shell/eviction_responder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <memory>
#include <optional>

#include "base/json/fields.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "tests/unit/reconcile/forwarding_client.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using namespace std::chrono_literals;
using crds::JobPhase;
using kube::Object;
using nlohmann::json;
using testing::HasSubstr;

// The world's objects, and Evictions with the rules of Kubernetes 1.37 for a responder's part
// (pkg/apis/lifecycle/validation). The test is the API's controller.
class Api final : public kube::Client {
 public:
  explicit Api(World& world) : w(world) {}

  Result<Object> get(const kube::Key& key) override {
    if (refuses) return std::unexpected(*refuses);
    if (key.kind == kPod && w.pods.contains(key.name)) return pod(w.pods.at(key.name));
    if (key.kind == kBspJob && key.name == w.job.metadata.name) {
      Object job;
      to_json(job, w.job);
      return job;
    }
    if (key.kind == kDisruptionBudget && is_protected) return make_disruption_budget(w.job, 2);
    if (key.kind == kNode)
      return Object{{"metadata", {{"name", key.name}}}, {"spec", {{"unschedulable", w.cordons.contains(key.name)}}}};
    if (key.kind == kEviction && evictions.contains(key.name)) return evictions.at(key.name);
    return fail(ErrorCode::kNotFound, "there is no such object");
  }
  Result<std::vector<Object>> list(const kube::Kind& kind, const std::string&,
                                   const std::map<std::string, std::string>& labels) override {
    if (refuses) return std::unexpected(*refuses);
    std::vector<Object> found;
    if (kind == kEviction) {
      ++listed;
      for (const auto& [name, eviction] : evictions) found.push_back(eviction);
    }
    if (kind == kRankMigration)
      for (const auto& [name, m] : w.migrations)
        if (std::ranges::includes(m.metadata.labels, labels)) to_json(found.emplace_back(), m);
    return found;
  }
  Result<Object> create(const Object& object) override {
    crds::RankMigration m = crds::rank_migration_from_json(object).value();
    if (w.migrations.contains(m.metadata.name)) return fail(ErrorCode::kConflict, "exists");
    m.metadata.uid = m.metadata.name + "-uid";
    w.migrations[m.metadata.name] = m;
    ++asked;
    if (loses_answers) return fail(ErrorCode::kUnavailable, "connection reset", true);
    return object;
  }
  Result<Object> update(const Object&) override { return fail(ErrorCode::kFailed, "nothing is updated"); }
  Result<Object> update_status(const Object& object) override {
    Object& there = evictions.at(kube::metadata_text(object, "name"));
    if (conflicts > 0 && conflicts--) return fail(ErrorCode::kConflict, "the object has been modified");
    const json &before = there["status"], &after = object["status"];
    EXPECT_EQ(before["targetResponders"], after["targetResponders"]) << "they are the controller's";
    EXPECT_EQ(before["responders"].size(), after["responders"].size());
    for (std::size_t i = 0; i < before["responders"].size(); ++i) {
      const json &old = before["responders"][i], &own = after["responders"][i];
      if (text_at(own, "name") != kResponder) {
        EXPECT_EQ(old, own) << "it is another's";
        continue;
      }
      EXPECT_EQ(text_at(before["targetResponders"][i], "state"), "Active") << "immutable otherwise";
      EXPECT_EQ(old["startTime"], own["startTime"]);
      EXPECT_EQ(text_at(old, "completionTime"), "") << "once set, it is immutable";
      const Time start = from_rfc3339(text_at(own, "startTime"));
      const Time last = old.contains("heartbeatTime") ? from_rfc3339(text_at(old, "heartbeatTime")) : start;
      const Time now = from_rfc3339(text_at(own, "heartbeatTime"));
      EXPECT_GE(now, start);
      EXPECT_LT(std::chrono::abs(now - w.now), 30s) << "must be set to the present time";
      const bool completes = own.contains("completionTime");
      EXPECT_TRUE(!completes || from_rfc3339(text_at(own, "completionTime")) >= start);
      EXPECT_TRUE(completes || !old.contains("heartbeatTime") || now - last >= 20s) << "heartbeats are too many";
      EXPECT_LE(text_at(own, "message").size(), 4000u);
    }
    there["status"] = after;
    return there;
  }
  Result<Object> patch_status(const kube::Key&, const Object&) override {
    return fail(ErrorCode::kFailed, "no status is patched");
  }
  Result<Object> resize_pod(const kube::Key&, const Object&) override {
    return fail(ErrorCode::kFailed, "nothing is resized");
  }
  Result<void> remove(const kube::Key& key, const std::string& uid) override {
    EXPECT_EQ(key.kind, kRankMigration);
    if (!w.migrations.contains(key.name)) return fail(ErrorCode::kNotFound, "gone");
    EXPECT_EQ(w.migrations.at(key.name).metadata.uid, uid);
    w.delete_migration(key.name);
    return {};
  }
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>&, const std::string&, std::string&,
                                             std::chrono::milliseconds) override {
    return fail(ErrorCode::kFailed, "nobody waits");
  }

  // --- The API's controller ---
  // A requester asks for the pod to go, and the operator's turn has come, beside the default responder.
  std::string request(const std::string& pod, const std::string& requester = "example.com/drainer") {
    const std::string name = "e-" + pod;
    if (!evictions.contains(name)) {
      const json responders = {{{"name", kResponder}, {"startTime", to_rfc3339(w.now)}}, {{"name", kDefault}}};
      const json targets = {{{"name", kResponder}, {"priority", 10000}, {"state", "Active"}},
                            {{"name", kDefault}, {"priority", 100}, {"state", "Inactive"}}};
      evictions[name] = {
          {"apiVersion", kEviction.api_version},
          {"kind", kEviction.kind},
          {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", std::format("uid-{}-{}", name, ++made_)}}},
          {"spec", {{"target", {{"pod", {{"name", pod}, {"uid", w.pods.at(pod).uid}}}}}}},
          {"status", {{"targetResponders", targets}, {"responders", responders}, {"requesters", json::array()}}}};
    }
    evictions[name]["status"]["requesters"].push_back({{"name", requester}, {"intent", "Eviction"}});
    return name;
  }
  void withdraw(const std::string& name, const std::string& requester) {
    json& status = evictions.at(name)["status"];
    bool wanted = false;
    for (json& each : status["requesters"]) {
      if (each["name"] == requester) each["intent"] = "Withdrawn";
      wanted |= each["intent"] == "Eviction";
    }
    if (!wanted) status["targetResponders"][0]["state"] = "Canceled";
  }
  json own(const std::string& name) { return evictions.at(name)["status"]["responders"][0]; }
  bool completed(const std::string& name) { return own(name).contains("completionTime"); }

  static constexpr const char* kDefault = "imperative-eviction.k8s.io/evictor";
  std::map<std::string, Object> evictions;
  bool is_protected = true;
  bool loses_answers = false;
  std::optional<Error> refuses;
  int conflicts = 0, listed = 0, asked = 0;

 private:
  [[nodiscard]] Object pod(const Pod& p) const {
    Object object = {{"metadata", {{"name", p.name}, {"uid", p.uid}, {"ownerReferences", owner_reference(w.job)}}},
                     {"spec", {{"nodeName", p.node}}},
                     {"status", {{"phase", "Running"}}}};
    if (p.gone_at >= 0) object["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z";
    return object;
  }
  World& w;
  int made_ = 0;
};

class EvictionResponderTest : public testing::Test {
 protected:
  EvictionResponderTest() : w({.ranks = 2, .slow = 3, .fast = 0}), api(w) { w.job.spec.sets.names = {"slow"}; }
  void SetUp() override {
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    restart();
  }
  void restart() { responder = std::make_unique<EvictionResponder>(api, ""); }
  // A second passes.
  void step() {
    for (int i = 0; i < 5; ++i) w.tick();
    const auto done = responder->round(w.now);
    EXPECT_TRUE(done || api.refuses || api.loses_answers) << done.error().message;
  }
  template <class F>
  bool step_until(F holds) {
    for (int i = 0; i < 300 && !holds(); ++i) step();
    return holds();
  }
  const std::string& pod(std::uint32_t rank = 0) { return w.job.status.ranks[rank].pod; }
  const std::string& node(std::uint32_t rank = 0) { return w.job.status.ranks[rank].node; }

  World w;
  Api api;
  std::unique_ptr<EvictionResponder> responder;
};

TEST_F(EvictionResponderTest, MovesTheRankAndIsDoneOnceItsPodGoes) {
  const std::string before = node(), name = api.request(pod());
  step();
  EXPECT_TRUE(responder->serves());
  EXPECT_FALSE(api.completed(name));
  EXPECT_THAT(text_at(api.own(name), "message"), HasSubstr("rank 0 is asked to leave node slow-0"));
  EXPECT_EQ(api.own(name).contains("heartbeatTime"), true);
  ASSERT_TRUE(step_until([&] { return api.completed(name); })) << w.trace;
  EXPECT_NE(node(), before);
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_EQ(api.asked, 1);
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(w.job.status.migrations.succeeded, 1u) << "the rank's new pod is not meant";
}

TEST_F(EvictionResponderTest, WithdrawnTheRankStays) {
  w.cordon("slow-2");  // there is no room elsewhere
  const std::string before = pod(), name = api.request(pod());
  for (int i = 0; i < 5; ++i) step();
  ASSERT_EQ(w.migrations.size(), 1u);
  api.withdraw(name, "example.com/drainer");
  step();
  EXPECT_TRUE(w.migrations.empty());
  w.cordon("slow-2", false);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(pod(), before);
  EXPECT_EQ(w.job.status.migrations.succeeded, 0u);
}

TEST_F(EvictionResponderTest, WithdrawnInTheMiddleOfAWaveTheRankStays) {
  const std::string before = pod(), name = api.request(pod());
  w.slow_start = 50;
  ASSERT_TRUE(responder->round(w.now));
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing)) << w.trace;
  for (int i = 0; i < 10; ++i) w.tick();
  api.withdraw(name, "example.com/drainer");
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(pod(), before) << w.trace;
  EXPECT_EQ(w.job.status.migrations.succeeded, 0u);
  EXPECT_EQ(w.job.status.attempt, 0u);
}

// The requests and the Eviction were removed while no operator looked.
TEST_F(EvictionResponderTest, AnEvictionThatVanishedIsWithdrawn) {
  w.cordon("slow-2");
  const std::string before = pod(), name = api.request(pod());
  for (int i = 0; i < 5; ++i) step();
  ASSERT_EQ(w.migrations.size(), 1u);
  w.migrate_by_hand("mine", 1, "", "*");
  api.evictions.clear();
  restart();
  step();
  EXPECT_EQ(w.migrations.size(), 1u);
  EXPECT_TRUE(w.migrations.contains("mine")) << "nobody has withdrawn that";
}

TEST_F(EvictionResponderTest, OfTwoRequestersBothMustWithdraw) {
  w.cordon("slow-2");
  const std::string before = node(), name = api.request(pod(), "example.com/a");
  api.request(pod(), "example.com/b");
  for (int i = 0; i < 5; ++i) step();
  api.withdraw(name, "example.com/a");
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(w.migrations.size(), 1u);
  w.cordon("slow-2", false);
  ASSERT_TRUE(step_until([&] { return api.completed(name); })) << w.trace;
  EXPECT_NE(node(), before);
  EXPECT_EQ(w.job.status.migrations.succeeded, 1u);
}

TEST_F(EvictionResponderTest, HeartbeatsWhileTheRankCannotLeave) {
  w.cordon("slow-2");
  const std::string name = api.request(pod());
  std::set<std::string> beats;
  for (int i = 0; i < 300; ++i) {
    step();
    beats.insert(text_at(api.own(name), "heartbeatTime"));
  }
  EXPECT_GE(beats.size(), 4u) << "20 minutes without one would pass the eviction on";
  EXPECT_LE(beats.size(), 15u);
  EXPECT_THAT(text_at(api.own(name), "message"), HasSubstr("no other node of the job's Sets has a free slot"));
  EXPECT_FALSE(api.completed(name));
}

TEST_F(EvictionResponderTest, IsDoneWhereTheJobLetsItsPodsGo) {
  const std::string name = api.request(pod());
  api.is_protected = false;
  step();
  EXPECT_TRUE(api.completed(name));
  EXPECT_EQ(text_at(api.own(name), "message"), "its job lets its pods be evicted");
  EXPECT_TRUE(w.migrations.empty());
}

TEST_F(EvictionResponderTest, HasNoPartInOthersTurns) {
  const std::string name = api.request(pod());
  for (const char* state : {"Inactive", "Interrupted", "Completed", "", "Active "}) {
    api.evictions.at(name)["status"]["targetResponders"][0]["state"] = state;
    step();
    EXPECT_TRUE(w.migrations.empty()) << state;
    EXPECT_FALSE(api.own(name).contains("heartbeatTime")) << state;
  }
}

TEST_F(EvictionResponderTest, AnApiServerWithoutEvictionsIsNoError) {
  api.refuses = Error{
      .code = ErrorCode::kUnavailable, .message = "the API server doesn't serve Eviction of x", .retryable = true};
  EXPECT_TRUE(responder->round(w.now));
  EXPECT_FALSE(responder->serves());
  api.refuses = Error{.code = ErrorCode::kRefused, .message = "evictions.lifecycle.k8s.io is forbidden"};
  EXPECT_FALSE(responder->round(w.now)) << "the chart's role is an older one";
  EXPECT_FALSE(responder->serves());
}

TEST_F(EvictionResponderTest, AnApiServerThatDoesNotAnswerHasWhatItHad) {
  step();
  ASSERT_TRUE(responder->serves());
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kTimeout}) {
    api.refuses = Error{.code = code, .message = "connection refused", .retryable = true};
    EXPECT_FALSE(responder->round(w.now));
    EXPECT_TRUE(responder->serves()) << "pods made meanwhile name the operator";
  }
}

// Between two rounds a pod is deleted and gone.
TEST_F(EvictionResponderTest, IsDoneBeforeTheOperatorDeletesThePod) {
  class Deleted final : public ForwardingClient {
   public:
    Deleted(Api& api, std::function<void()> then) : ForwardingClient(api), then_(std::move(then)) {}
    Result<void> remove(const kube::Key&, const std::string&) override {
      then_();
      return {};
    }

   private:
    std::function<void()> then_;
  };
  const std::string name = api.request(pod()), other = api.request(pod(1));
  step();
  bool completed = false;
  Deleted to(api, [&] { completed = api.completed(name); });
  RespondingClient client(
      to, [&] { return responder->serves(); },
      [&](kube::Client& by, const kube::Key& key, const std::string& uid) {
        responder->complete_before_removal(by, key, uid, w.now);
      });
  const kube::Key of_rank{kPod, "default", pod()};
  ASSERT_TRUE(client.remove(of_rank, "another"));
  EXPECT_FALSE(completed) << "an earlier pod of that name";
  ASSERT_TRUE(client.remove({kSecret, "default", pod()}, w.pods.at(pod()).uid));
  EXPECT_FALSE(completed);
  api.conflicts = 2;
  ASSERT_TRUE(client.remove(of_rank, w.pods.at(pod()).uid));
  EXPECT_TRUE(completed);
  EXPECT_EQ(text_at(api.own(name), "message"), "the operator deletes the pod");
  EXPECT_FALSE(api.completed(other));
  api.refuses = Error{.code = ErrorCode::kUnavailable, .message = "connection refused", .retryable = true};
  EXPECT_TRUE(client.remove({kPod, "default", pod(1)}, w.pods.at(pod(1)).uid)) << "the pod is deleted all the same";
}

TEST_F(EvictionResponderTest, ALostAnswerMakesNoSecondRequest) {
  const std::string name = api.request(pod());
  api.loses_answers = true;
  step();
  EXPECT_FALSE(api.own(name).contains("heartbeatTime"));
  api.loses_answers = false;
  api.conflicts = 2;
  ASSERT_TRUE(step_until([&] { return api.completed(name); })) << w.trace;
  EXPECT_EQ(api.asked, 1);
}

// The operator, and the responder in it, are replaced at any time.
TEST_F(EvictionResponderTest, TwentyOfTwentyWithRestartsBetween) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    World world({.ranks = 2, .slow = 3, .fast = 0, .seed = seed});
    world.job.spec.sets.names = {"slow"};
    ASSERT_TRUE(world.run_until(JobPhase::kRunning)) << world.trace;
    Api server(world);
    auto now = std::make_unique<EvictionResponder>(server, "");
    const std::string before = world.job.status.ranks[0].node;
    const std::string name = server.request(world.job.status.ranks[0].pod);
    for (std::uint32_t i = 0; i < 3000 && !server.completed(name); ++i) {
      world.tick();
      if ((i * 7 + seed) % 11 == 0) world.restart_operator(1 + static_cast<int>(seed % 5));
      if ((i * 5 + seed) % 7 == 0) now = std::make_unique<EvictionResponder>(server, "");
      if ((i + seed) % 3 != 0) continue;
      ASSERT_TRUE(now->round(world.now));
    }
    EXPECT_TRUE(server.completed(name)) << "seed " << seed << "\n" << world.trace;
    EXPECT_NE(world.job.status.ranks[0].node, before) << "seed " << seed;
    EXPECT_EQ(world.job.status.migrations.succeeded, 1u) << "seed " << seed;
    EXPECT_EQ(world.job.status.attempt, 0u) << "seed " << seed;
    EXPECT_EQ(world.violation, "") << "seed " << seed;
  }
}

// As an API server's client does it.
class Resizes final : public ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;
  Result<Object> resize_pod(const kube::Key&, const Object& patch) override { return patch; }
};

TEST(RespondingClient, PassesResizesOn) {
  World w;
  Api api(w);
  Resizes resizes(api);
  RespondingClient client(resizes, [] { return true; }, {});
  const Object patch = {{"spec", "s"}};
  EXPECT_EQ(client.resize_pod({kPod, "default", "p"}, patch).value_or(Object()), patch);
}

// Takes pods as an API server does that knows the field, or doesn't (fieldValidation=Strict).
class Pods final : public ForwardingClient {
 public:
  explicit Pods(kube::Client& none) : ForwardingClient(none) {}
  Result<Object> create(const Object& object) override {
    if (is_old && part_at(object, "spec").contains("evictionResponders"))
      return fail(ErrorCode::kInvalid, "strict decoding error: unknown field \"spec.evictionResponders\"");
    made.push_back(object);
    return object;
  }
  std::vector<Object> made;
  bool is_old = false;
};

TEST_F(EvictionResponderTest, RanksPodsNameTheOperatorWhereThereAreEvictions) {
  Pods pods(api);
  bool serves = false;
  RespondingClient client(pods, [&] { return serves; }, {});
  const Object ranks = {{"kind", "Pod"}, {"metadata", {{"labels", {{"migbsp.io/rank", "0"}}}}}, {"spec", {{"x", 1}}}};
  const Object another = {{"kind", "Pod"}, {"metadata", {{"name", "remover"}}}, {"spec", {{"x", 1}}}};
  ASSERT_TRUE(client.create(ranks));
  EXPECT_EQ(pods.made.back(), ranks);
  serves = true;
  ASSERT_TRUE(client.create(ranks));
  EXPECT_EQ(pods.made.back()["spec"]["evictionResponders"][0]["name"], "migbsp.io/operator");
  ASSERT_TRUE(client.create(another));
  EXPECT_EQ(pods.made.back(), another);
  pods.is_old = true;
  ASSERT_TRUE(client.create(ranks));
  EXPECT_EQ(pods.made.back(), ranks) << "no job waits for the upgrade of the last API server";
}

// --- The kernel ------------------------------------------------------------------------------------------------------

TEST(EvictionResponse, APodNamesTheOperatorBesideOthers) {
  json pod = {{"spec", {{"containers", json::array()}}}};
  name_responder(pod);
  const json own = {{"name", "migbsp.io/operator"}, {"priority", 10000}};
  EXPECT_EQ(pod["spec"]["evictionResponders"], json::array({own}));
  name_responder(pod);
  EXPECT_EQ(pod["spec"]["evictionResponders"], json::array({own})) << "once";
  json with = {{"spec", {{"evictionResponders", {{{"name", "example.com/r"}, {"priority", 20000}}}}}}};
  name_responder(with);
  EXPECT_EQ(with["spec"]["evictionResponders"].size(), 2u);
  json full = {{"spec", {{"evictionResponders", json::array()}}}};
  for (int i = 0; i < 10; ++i)
    full["spec"]["evictionResponders"].push_back({{"name", std::format("example.com/{}", i)}, {"priority", 5000}});
  const json ten = full;
  name_responder(full);
  EXPECT_EQ(full, ten) << "the API allows no more than ten";
  json grouped = {{"spec", {{"schedulingGroup", {{"podGroupName", "g"}}}}}};
  const json group = grouped;
  name_responder(grouped);
  EXPECT_EQ(grouped, group) << "the API forbids both";
}

TEST(EvictionResponse, EveryTypeAtEveryPlaceOfAnEviction) {
  const json good = {
      {"metadata", {{"name", "e"}, {"namespace", "default"}, {"uid", "u"}}},
      {"spec", {{"target", {{"pod", {{"name", "p"}, {"uid", "x"}}}}}}},
      {"status",
       {{"targetResponders", {{{"name", kResponder}, {"state", "Active"}}}},
        {"responders",
         {{{"name", kResponder}, {"startTime", "2026-11-29T11:00:00Z"}, {"heartbeatTime", "2026-11-29T11:00:00Z"}}}}}}};
  const Time now = from_rfc3339("2026-11-29T12:00:00Z");
  const json flat = good.flatten();
  int tried = 0;
  for (const auto& [path, value] : flat.items())
    for (auto at = json::json_pointer(path); !at.empty(); at = at.parent_pointer())
      for (const json& wrong : {json(nullptr), json(true), json(-1), json(1e300), json("text"), json::array(),
                                json::array({nullptr}), json::object()}) {
        json bad = good;
        bad[at] = wrong;
        review_of(bad);
        responder_state(bad);
        respond(bad, true, "m", now);
        ++tried;
      }
  EXPECT_GT(tried, 100);
  json whole = good;
  EXPECT_TRUE(respond(whole, true, std::string(3999, 'x') + "ä", now));
  EXPECT_EQ(text_at(whole["status"]["responders"][0], "message").size(), 3999u) << "not half a character";
  EXPECT_FALSE(respond(whole, true, "m", now)) << "completed once";
}

TEST(EvictionResponse, AClockThatIsBehindWritesNoEarlierTime) {
  json eviction = {{"status",
                    {{"targetResponders", {{{"name", kResponder}, {"state", "Active"}}}},
                     {"responders", {{{"name", kResponder}, {"startTime", "2026-11-29T12:00:10Z"}}}}}}};
  ASSERT_TRUE(respond(eviction, false, "m", from_rfc3339("2026-11-29T12:00:00Z")));
  EXPECT_EQ(from_rfc3339(text_at(eviction["status"]["responders"][0], "heartbeatTime")),
            from_rfc3339("2026-11-29T12:00:10Z"));
}

}  // namespace
}  // namespace bsp::reconcile::sim
