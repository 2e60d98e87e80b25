// Two releases that would manage one namespace.
#include <gmock/gmock.h>

#include "operator/reconcile/shell/holds.h"
#include "tests/unit/reconcile/forwarding_client.h"
#include "tests/unit/reconcile/stored_jobs.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

class Failing : public ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;
  Result<kube::Object> get(const kube::Key& key) override {
    return error ? Result<kube::Object>(std::unexpected(*error)) : ForwardingClient::get(key);
  }
  Result<kube::Object> create(const kube::Object& object) override {
    return write_error ? Result<kube::Object>(std::unexpected(*write_error)) : ForwardingClient::create(object);
  }
  Result<kube::Object> update(const kube::Object& object) override {
    return write_error ? Result<kube::Object>(std::unexpected(*write_error)) : ForwardingClient::update(object);
  }
  std::optional<Error> error, write_error;
};

class Holds : public StoredJobs {
 protected:
  // Whose the namespace is, as both find after `later`.
  std::pair<NamespaceHolds::Holder, NamespaceHolds::Holder> both(Duration later) {
    now_ += later;
    return {one_.ask("default"), two_.ask("default")};
  }
  Duration now_ = 1h;
  Failing client_{*store_};
  NamespaceHolds one_{client_, "a/one", [this] { return now_; }};
  NamespaceHolds two_{*store_, "b/two", [this] { return now_; }};
};

TEST_F(Holds, TheFirstManagesTheNamespaceForAsLongAsItIsThere) {
  for (int minute = 0; minute < 20; ++minute) {
    const auto [one, two] = both(1min);
    EXPECT_TRUE(one.ours);
    EXPECT_FALSE(two.ours);
    EXPECT_EQ(two.other, "a/one");
  }
  EXPECT_TRUE(two_.ask("elsewhere").ours) << "each namespace is one of its own";
}

TEST_F(Holds, TheOtherBeginsOnlyLongAfterTheFirstHasStopped) {
  ASSERT_TRUE(both({}).first.ours);
  client_.error = Error{ErrorCode::kUnavailable, "no answer", true};
  std::optional<Duration> stopped, began;
  for (const Duration since = now_; now_ < since + 5min && !began;) {
    const auto [one, two] = both(1s);
    EXPECT_FALSE(one.ours && two.ours);
    if (!one.ours && !stopped) stopped = now_ - since;
    if (two.ours) began = now_ - since;
  }
  ASSERT_TRUE(stopped && began);
  EXPECT_LE(*stopped, NamespaceHolds::kGiveUp);
  EXPECT_GE(*began, NamespaceHolds::kDuration);
  client_.error.reset();
  const auto [one, two] = both(1min);
  EXPECT_FALSE(one.ours);
  EXPECT_EQ(one.other, "b/two");
  EXPECT_TRUE(two.ours);
}

TEST_F(Holds, ARoleThatMayNotShowItOrANamespaceThatIsGoingStopsNothing) {
  client_.write_error = Error{ErrorCode::kRefused, "forbidden", false};
  EXPECT_TRUE(one_.ask("default").ours);
  client_.error = client_.write_error;
  now_ += 1min;
  EXPECT_TRUE(one_.ask("default").ours);
  client_.error.reset();
  ASSERT_TRUE(two_.ask("default").ours);
  now_ += 1min;
  EXPECT_FALSE(one_.ask("default").ours) << "it may read that another one is there";
  EXPECT_TRUE(NamespaceHolds(client_, "").ask("default").ours) << "on one machine";
}

TEST_F(Holds, AWriteThatIsRefusedForAnyReasonStopsNothingWhileNobodyElseHasIt) {
  ASSERT_TRUE(both({}).first.ours);
  for (const ErrorCode code : {ErrorCode::kRefused, ErrorCode::kInvalid, ErrorCode::kNoSpace, ErrorCode::kFailed}) {
    client_.write_error = Error{code, "a webhook of the namespace", false};
    for (int i = 0; i < 20; ++i) {
      now_ += 10s;
      EXPECT_TRUE(one_.ask("default").ours) << static_cast<int>(code);
    }
  }
  EXPECT_TRUE(two_.ask("default").ours) << "the first hasn't renewed it for long";
  now_ += 10s;
  EXPECT_FALSE(one_.ask("default").ours);
}

TEST_F(Holds, WhatATenantWritesIntoTheLeaseStopsNothingButTheirs) {
  const auto written = [&](json spec) {
    const kube::Key key{{"coordination.k8s.io/v1", "Lease"}, "default", NamespaceHolds::lease_name()};
    auto there = store_->get(key);
    json lease = there ? json(*there)
                       : json{{"apiVersion", key.kind.api_version},
                              {"kind", key.kind.kind},
                              {"metadata", {{"name", key.name}, {"namespace", key.name_space}}}};
    lease["spec"] = std::move(spec);
    ASSERT_TRUE(there ? store_->update(lease) : store_->create(lease));
  };
  for (const json& spec :
       {json(), json("text"), json::array({1}), json{{"holderIdentity", 7}},
        json{{"holderIdentity", "a/one"}, {"leaseDurationSeconds", "x"}, {"renewTime", json::array()}},
        json{{"leaseTransitions", 1e300}}}) {
    written(spec);
    now_ += 1min;
    EXPECT_TRUE(one_.ask("default").ours) << spec;
  }
  written({{"holderIdentity", std::string(100'000, 'x')}, {"leaseDurationSeconds", 1'000'000'000}});
  now_ += 1min;
  EXPECT_FALSE(one_.ask("default").ours);
  EXPECT_LE(one_.ask("default").other.size(), 1000);
  now_ += 2h;
  EXPECT_TRUE(one_.ask("default").ours) << "nobody renews it";
}

TEST_F(Holds, TheLeaseGoesWithTheLastJobOfTheNamespace) {
  const kube::Key key{kube::kLease, "default", NamespaceHolds::lease_name()};
  ASSERT_TRUE(both({}).first.ours);
  one_.job_is_gone("default/a", false);
  two_.job_is_gone("default/a", true);
  EXPECT_TRUE(store_->get(key)) << "it isn't the second's";
  one_.job_is_gone("default/b", true);
  EXPECT_FALSE(store_->get(key));
  EXPECT_TRUE(two_.ask("default").ours);
  client_.error = Error{ErrorCode::kUnavailable, "no answer", true};
  two_.job_is_gone("default/c", true);
  one_.job_is_gone("default/c", true);
}

TEST_F(Holds, AReplicaThatLeadsNextHasItAtOnce) {
  ASSERT_TRUE(both({}).first.ours);
  EXPECT_TRUE(NamespaceHolds(client_, "a/one", [this] { return now_; }).ask("default").ours);
  now_ += 1min;
  EXPECT_FALSE(two_.ask("default").ours);
}

TEST_F(Holds, TheSecondLeavesJobsAloneAndSaysSo) {
  ASSERT_TRUE(one_.ask("default").ours);
  add("weather", [](json&) {});
  const json before = read_job("weather");
  shell_ = std::make_unique<Shell>(*store_,
                                   ShellOptions{.name_space = "default",
                                                .network = "",
                                                .image_defaults = [](const std::string&) { return ImageDefaults{}; },
                                                .holder = "b/two"});
  const auto told = [&]() -> std::string {
    const auto events = store_->list(kEvent, "default").value();
    for (const kube::Object& event : events)
      if (text_at(event, "reason") == "ManagedByAnother") return text_at(event, "note");
    return "";
  };
  ASSERT_TRUE(eventually([&] { return !told().empty(); }));
  EXPECT_THAT(told(), HasSubstr("operator a/one manages the jobs of namespace default"));
  EXPECT_THAT(told(), HasSubstr("operator b/two leaves them alone"));
  EXPECT_EQ(read_job("weather"), before);
  EXPECT_FALSE(is_gone("weather-r0-g0"));
}

}  // namespace
}  // namespace bsp::reconcile
