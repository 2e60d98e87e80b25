// The building blocks of controllers: workqueue, leader election, finalizers.
#include <format>
#include <set>

#include "operator/kube/leader.h"
#include "operator/kube/modify.h"
#include "operator/kube/workqueue.h"
#include "world.h"

namespace bsp::kube_test {
namespace {

using kube::Candidate;
using kube::Lane;
using kube::LeaderElection;
using kube::LeaderOptions;
using kube::RateLimiter;
using kube::Workqueue;

// --- Workqueue ----------------------------------------------------------------------------------------------

TEST(WorkqueueTest, KeyIsQueuedOnceAndHasOneWorker) {
  Workqueue queue;
  queue.add("a");
  queue.add("b");
  queue.add("a");
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.get(), "a");
  queue.add("a");  // while a worker has it
  queue.add("a");
  EXPECT_EQ(queue.size(), 1u) << "no other worker gets it";
  EXPECT_EQ(queue.get(), "b");
  queue.done("a");
  EXPECT_EQ(queue.get(), "a") << "reconciles what happened meanwhile";
  queue.done("a");
  queue.done("b");
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(queue.get(Lane::kOrdinary, std::chrono::steady_clock::now()));
}

TEST(WorkqueueTest, DelayedKeysComeInOrder) {
  Workqueue queue;
  queue.add_after("late", seconds(3600));
  EXPECT_EQ(queue.size(), 0u);
  const auto began = std::chrono::steady_clock::now();
  queue.add_after("early", milliseconds(20));
  EXPECT_EQ(queue.get(), "early");
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(20));
  const auto sooner = std::chrono::steady_clock::now();
  queue.add_after("late", milliseconds(80));
  queue.add_after("late", seconds(3600));  // doesn't postpone it
  EXPECT_EQ(queue.get(), "late");
  EXPECT_GE(std::chrono::steady_clock::now() - sooner, milliseconds(80));
}

TEST(WorkqueueTest, ShutDownWakesWorkers) {
  Workqueue queue;
  std::thread worker([&] { EXPECT_FALSE(queue.get()); });
  queue.shut_down();
  worker.join();
  queue.add("x");
  EXPECT_FALSE(queue.get());
}

// The next key that is ready, or "".
std::string next_of(Workqueue& queue, Lane least = Lane::kOrdinary) {
  return queue.get(least, std::chrono::steady_clock::now()).value_or("");
}

kube::WorkqueueOptions by_first_letter(unsigned max_per_tenant) {
  return {.tenant_of = [](const std::string& key) { return key.substr(0, 1); }, .max_per_tenant = max_per_tenant};
}

TEST(WorkqueueTest, TenantsTakeTurnsAndNoneTakesAllWorkers) {
  Workqueue queue(by_first_letter(2));
  for (const char* key : {"a1", "a2", "a3", "a4", "b1", "b2", "c1"}) queue.add(key);
  EXPECT_EQ(queue.size(), 7u);
  std::vector<std::string> taken;
  for (std::string key; !(key = next_of(queue)).empty();) taken.push_back(key);
  EXPECT_EQ(taken, (std::vector<std::string>{"a1", "b1", "c1", "a2", "b2"}))
      << "a's other keys wait for its first ones";
  EXPECT_EQ(queue.size(), 2u);
  queue.add("b3");
  EXPECT_EQ(next_of(queue), "");
  queue.done("b1");
  EXPECT_EQ(next_of(queue), "b3");
  queue.done("a2");
  EXPECT_EQ(next_of(queue), "a3");
  queue.add("a3");  // is queued again when done, behind its tenant's other keys
  queue.done("a3");
  EXPECT_EQ(next_of(queue), "a4");
  queue.done("a4");
  EXPECT_EQ(next_of(queue), "a3");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(WorkqueueTest, UrgentKeysComeFirstWithTheirOwnLimit) {
  Workqueue queue(by_first_letter(1));
  queue.set_lane("a9", Lane::kUrgent);
  for (const char* key : {"a1", "b1", "b2", "a9"}) queue.add(key);
  queue.set_lane("b2", Lane::kUrgent);  // while it waits
  EXPECT_EQ(next_of(queue, Lane::kUrgent), "a9");
  EXPECT_EQ(next_of(queue, Lane::kUrgent), "b2");
  EXPECT_EQ(next_of(queue, Lane::kUrgent), "") << "that lane's worker takes no others";
  EXPECT_EQ(next_of(queue), "a1") << "a's urgent key with a worker doesn't count here";
  EXPECT_EQ(next_of(queue), "b1");
  queue.add("a9");
  queue.add("a1");
  queue.set_lane("a9", Lane::kOrdinary);  // while a worker has it
  queue.done("a9");
  queue.done("a1");
  EXPECT_EQ(next_of(queue, Lane::kUrgent), "");
  EXPECT_EQ(next_of(queue), "a9");
  queue.done("a9");
  EXPECT_EQ(next_of(queue), "a1");
}

TEST(WorkqueueTest, ConcurrentWorkersMissNothing) {
  Workqueue queue;
  std::mutex mutex;
  std::map<std::string, int> wanted, seen;
  std::set<std::string> in_work;
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w)
    workers.emplace_back([&] {
      while (const auto key = queue.get()) {
        {
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(in_work.insert(*key).second) << "two workers on one key";
          seen[*key] = wanted[*key];
        }
        std::this_thread::yield();
        {
          const std::lock_guard lock(mutex);
          in_work.erase(*key);
        }
        queue.done(*key);
      }
    });
  for (int i = 0; i < 2000; ++i) {
    const std::string key = std::to_string(i % 13);
    {
      const std::lock_guard lock(mutex);
      ++wanted[key];
    }
    queue.add(key);
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return seen == wanted && in_work.empty();
  }));
  queue.shut_down();
  for (auto& worker : workers) worker.join();
}

TEST(RateLimiterTest, DoublesPerKeyAndLimitsTheTotalRate) {
  RateLimiter limiter(
      {.first_delay = milliseconds(5), .last_delay = seconds(300), .failures_per_second = 10, .burst = 100});
  const RateLimiter::Time now{};
  EXPECT_EQ(limiter.delay("a", now), milliseconds(5));
  EXPECT_EQ(limiter.delay("a", now), milliseconds(10));
  EXPECT_EQ(limiter.delay("a", now), milliseconds(20));
  EXPECT_EQ(limiter.failures("a"), 3u);
  limiter.forget("a");
  EXPECT_EQ(limiter.delay("a", now), milliseconds(5));
  for (int i = 0; i < 96; ++i) limiter.delay("k" + std::to_string(i), now);
  // The bucket is empty: ten more take a second in total.
  std::chrono::nanoseconds last{};
  for (int i = 0; i < 10; ++i) last = limiter.delay("l" + std::to_string(i), now);
  EXPECT_NEAR(std::chrono::duration<double>(last).count(), 1.0, 1e-6);
  EXPECT_EQ(limiter.delay("m", now + seconds(60)), milliseconds(5)) << "full again";
  for (int i = 0; i < 80; ++i) last = limiter.delay("a", now + seconds(1000 + 10 * i));
  EXPECT_EQ(last, seconds(300));
}

// --- Finalizers ---------------------------------------------------------------------------------------------

using ModifyTest = World;

TEST_F(ModifyTest, RemovesFinalizersDespiteConcurrentWrites) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  const Key a = key(kConfigMap, "a");
  ASSERT_TRUE(kube::modify(*client, a, [](Object& object) {
    object["metadata"]["finalizers"] = {"kubetest.example/x"};
    return true;
  }));
  // Another client writes between our read and our write, twice.
  int raced = 0;
  const auto changed = kube::modify(*client, a, [&](Object& object) {
    if (raced < 2) {
      Object theirs = object;
      theirs["data"]["x"] = std::format("race {}", ++raced);
      EXPECT_TRUE(client->update(theirs));
    }
    object["metadata"]["labels"]["mine"] = "yes";
    return true;
  });
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ((*changed)["data"]["x"], "race 2") << "keeps the other client's write";
  EXPECT_TRUE(kube::has_finalizer(*changed, "kubetest.example/x"));
  ASSERT_TRUE(client->remove(a, ""));
  EXPECT_TRUE(kube::is_being_deleted(client->get(a).value()));
  const std::string uid = client->get(a).value()["metadata"]["uid"];
  ASSERT_TRUE(kube::remove_finalizer(*client, a, "another", "kubetest.example/x"));
  EXPECT_TRUE(client->get(a)) << "a recreated object would keep its finalizer";
  ASSERT_TRUE(kube::remove_finalizer(*client, a, uid, "kubetest.example/x"));
  EXPECT_EQ(client->get(a).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(kube::remove_finalizer(*client, a, uid, "kubetest.example/x")) << "a missing object is fine";
}

// --- Leader election ----------------------------------------------------------------------------------------

const LeaderOptions kLeader{.name_space = "default",
                            .name = "operator",
                            .identity = "us",
                            .duration = seconds(15),
                            .give_up = seconds(10),
                            .period = seconds(2)};
Object lease_of(const std::string& holder, int version) {
  return {{"metadata", {{"name", "operator"}, {"resourceVersion", std::to_string(version)}}},
          {"spec",
           {{"holderIdentity", holder}, {"leaseDurationSeconds", 15}, {"leaseTransitions", 4}, {"renewTime", "r"}}}};
}

TEST(CandidateTest, TakesAFreeLeaseAndWaitsForAHeldOne) {
  Candidate candidate(kLeader);
  const Object made = candidate.next(nullptr, seconds(0), Time{}).value();
  EXPECT_EQ(made["spec"]["holderIdentity"], "us");
  EXPECT_EQ(made["spec"]["leaseTransitions"], 0);
  EXPECT_EQ(made["spec"]["leaseDurationSeconds"], 15);
  EXPECT_FALSE(candidate.leads(seconds(0))) << "not before it is written";

  Object theirs = lease_of("them", 1);
  EXPECT_FALSE(candidate.next(&theirs, seconds(100), Time{}));
  EXPECT_EQ(candidate.holder(), "them");
  EXPECT_FALSE(candidate.next(&theirs, seconds(114), Time{}));
  theirs = lease_of("them", 2);  // renewed
  EXPECT_FALSE(candidate.next(&theirs, seconds(114), Time{}));
  EXPECT_FALSE(candidate.next(&theirs, seconds(128), Time{}));
  const Object taken = candidate.next(&theirs, seconds(129), Time{}).value();
  EXPECT_EQ(taken["spec"]["holderIdentity"], "us");
  EXPECT_EQ(taken["spec"]["leaseTransitions"], 5);
  EXPECT_EQ(taken["metadata"]["resourceVersion"], "2") << "so that it fails if another candidate was faster";
  theirs = lease_of("", 3);  // released
  EXPECT_TRUE(candidate.next(&theirs, seconds(130), Time{}));
  theirs = lease_of("slow", 4);  // a holder with a longer duration than ours
  theirs["spec"]["leaseDurationSeconds"] = 60;
  EXPECT_FALSE(candidate.next(&theirs, seconds(200), Time{}));
  EXPECT_FALSE(candidate.next(&theirs, seconds(259), Time{}));
  EXPECT_TRUE(candidate.next(&theirs, seconds(260), Time{}));
}

TEST(CandidateTest, LeadershipEndsBeforeTheLeaseExpires) {
  Candidate us(kLeader);
  LeaderOptions other = kLeader;
  other.identity = "them";
  Candidate them(other);
  const Object ours = us.next(nullptr, seconds(0), Time{}).value();
  us.written(seconds(1));  // sent at 1 s, so others can't see its effect before that
  Object seen = ours;
  seen["metadata"]["resourceVersion"] = "1";
  EXPECT_FALSE(them.next(&seen, seconds(1), Time{}));
  EXPECT_TRUE(us.leads(milliseconds(10999)));
  EXPECT_FALSE(us.leads(seconds(11)));
  EXPECT_FALSE(them.next(&seen, milliseconds(15999), Time{})) << "4 s after we stopped";
  EXPECT_TRUE(them.next(&seen, seconds(16), Time{}));
}

class LeaderTest : public World {
 protected:
  static LeaderOptions fast(const std::string& identity) {
    return {.name_space = "default",
            .name = "operator",
            .identity = identity,
            .duration = seconds(5),
            .give_up = seconds(3),
            .period = milliseconds(200)};
  }
  // Long enough for a busy machine.
  static LeaderOptions steady(const std::string& identity) {
    LeaderOptions options = fast(identity);
    options.duration = seconds(60);
    options.give_up = seconds(50);
    return options;
  }
  static ApiClientOptions impatient() {
    ApiClientOptions options = quick();
    options.api.call = seconds(2);
    options.api.attempt = seconds(1);
    return options;
  }
  Object lease(ApiClient& client) {
    return client.get({{"coordination.k8s.io/v1", "Lease"}, "default", "operator"}).value();
  }
};

TEST_F(LeaderTest, OneLeadsAndReleases) {
  auto client = open();
  std::atomic<int> leaders = 0, most = 0;
  auto count = [&](bool leads) -> Result<void> {
    leaders += leads ? 1 : -1;
    most = std::max(most.load(), leaders.load());
    return {};
  };
  auto first = std::move(LeaderElection::create(*client, steady("first"), count)).value();
  ASSERT_TRUE(eventually([&] { return first->leads() && leaders == 1; }));
  auto second = std::move(LeaderElection::create(*client, steady("second"), count)).value();
  ASSERT_TRUE(eventually([&] { return second->holder() == "first"; }));
  EXPECT_FALSE(second->leads());
  first.reset();
  ASSERT_TRUE(eventually([&] { return second->leads() && leaders == 1; }));
  EXPECT_EQ(lease(*client)["spec"]["leaseTransitions"], 1);
  EXPECT_EQ(most, 1);
  second.reset();
  EXPECT_EQ(leaders, 0);
  EXPECT_EQ(lease(*client)["spec"]["holderIdentity"], "");
}

TEST_F(LeaderTest, DisconnectedLeaderStopsBeforeTheNextStarts) {
  // The second reaches the server at another address; the first one's connection breaks.
  TlsServer own(Pki::get().server, Pki::get().ca.certificate, handler());
  kube::Config mine = config();
  mine.server = "https://127.0.0.1:" + std::to_string(own.port());
  auto first_client = std::move(ApiClient::create(mine, impatient())).value();
  auto second_client = open(impatient());
  std::unique_ptr<LeaderElection> first, second;
  std::atomic<bool> first_ended = false, second_began = false;
  first = std::move(LeaderElection::create(*first_client, fast("first"), [&](bool leads) -> Result<void> {
            first_ended = !leads;
            return {};
          })).value();
  ASSERT_TRUE(eventually([&] { return first->leads(); }));
  second = std::move(LeaderElection::create(*second_client, fast("second"), [&](bool leads) -> Result<void> {
             EXPECT_FALSE(leads && first->leads());
             second_began = second_began || leads;
             return {};
           })).value();
  own.inject({.match = "", .what = Fault::kStall, .times = 1000000, .after = 0});
  ASSERT_TRUE(eventually([&] {
    // In this order, because time passes between the two calls.
    const bool theirs = second->leads();
    EXPECT_FALSE(theirs && first->leads());
    return theirs;
  }));
  EXPECT_FALSE(first->leads());
  EXPECT_TRUE(eventually([&] { return first_ended && second_began; }));
  own.clear_faults();
  own.release();
  ASSERT_TRUE(eventually([&] { return first->holder() == "second"; })) << "it sees the leader once it is reconnected";
  EXPECT_FALSE(first->leads());
}

TEST_F(LeaderTest, OneThatCannotStartLetsTheNextLeadAndTriesAgain) {
  auto client = open();
  std::atomic<bool> broken = true, runs = false;
  std::atomic<int> tries = 0, ends = 0;
  LeaderOptions often = steady("first");
  often.rest = milliseconds(300);
  const auto first = std::move(LeaderElection::create(*client, often, [&](bool leads) -> Result<void> {
                       if (!leads) {
                         ++ends;
                         runs = false;
                         return {};
                       }
                       ++tries;
                       if (broken) return fail(ErrorCode::kFailed, "the port is in use");
                       runs = true;
                       return {};
                     })).value();
  ASSERT_TRUE(eventually([&] { return tries >= 2; })) << "it tries again";
  ASSERT_TRUE(eventually([&] { return !first->leads() && lease(*client)["spec"]["holderIdentity"] == ""; }));
  std::atomic<bool> second_leads = false;
  auto second = std::move(LeaderElection::create(*client, steady("second"), [&](bool leads) -> Result<void> {
                  second_leads = leads;
                  return {};
                })).value();
  ASSERT_TRUE(eventually([&] { return second_leads.load(); })) << "the Lease is free for it";
  ASSERT_TRUE(eventually([&] { return first->holder() == "second"; }));
  broken = false;
  second.reset();
  ASSERT_TRUE(eventually([&] { return first->leads() && runs; })) << "what kept it from leading has passed";
  EXPECT_EQ(ends, tries - 1) << "each start that failed has ended";
}

TEST_F(LeaderTest, RejectsInconsistentOptions) {
  auto client = open();
  const auto nothing = [](bool) { return Result<void>(); };
  LeaderOptions bad = fast("x");
  bad.give_up = bad.duration;
  EXPECT_THAT(LeaderElection::create(*client, bad, nothing).error().message, HasSubstr("shorter"));
  bad = fast("");
  EXPECT_THAT(LeaderElection::create(*client, bad, nothing).error().message, HasSubstr("identity"));
}

}  // namespace
}  // namespace bsp::kube_test
