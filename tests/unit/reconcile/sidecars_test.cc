#include "operator/reconcile/shell/links/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bsp::reconcile {
namespace {

using testing::ElementsAre;

TEST(CallLimit, QueuesTheOthers) {
  CallLimit contacts(2);
  std::vector<int> begun;
  const auto contact = [&](int who) {
    contacts.begin([&begun, who] {
      begun.push_back(who);
      return true;
    });
  };
  for (const int who : {1, 2, 3, 4}) contact(who);
  EXPECT_THAT(begun, ElementsAre(1, 2));
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3));
  contacts.end();
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4));
  contact(5);
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4, 5)) << "there was a place for another one";
}

TEST(CallLimit, CountsNoCancelledCall) {
  CallLimit contacts(1);
  int begun = 0;
  const auto wanted = [&] { return ++begun > 0; };
  contacts.begin(wanted);
  contacts.begin([] { return false; });
  contacts.begin(wanted);
  EXPECT_EQ(begun, 1);
  contacts.end();
  EXPECT_EQ(begun, 2);
}

migrate::Action::Plan plan_of(std::uint64_t epoch, std::uint32_t ranks) {
  wire::EpochPlan plan{.epoch = epoch, .pmix_namespace = "uid", .sets = {"slow"}, .members = {}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    plan.members.push_back({rank, "job-" + std::to_string(rank), "uid", "10.0.0.1:7600", 0});
  return std::make_shared<const wire::EpochPlan>(std::move(plan));
}

// Each reconcile makes the plan anew, and a plan has an entry for each rank that it is sent to.
TEST(PlanRequest, IsEncodedOnceForAllPodsAndResends) {
  PlanRequest request;
  const auto of = [&](const migrate::Action::Plan& plan, const std::optional<wire::Token>& token = {}) {
    migrate::Action action = migrate::Action::prepare_epoch({"pod"}, plan);
    action.token = token;
    return request.of(action).frame;
  };
  const auto first = of(plan_of(3, 100));
  EXPECT_EQ(of(plan_of(3, 100)), first);
  const auto other = of(plan_of(4, 100));
  EXPECT_NE(other, first);
  EXPECT_THAT(*other, testing::HasSubstr(R"("verb":"prepareEpoch")"));
  EXPECT_THAT(*of(plan_of(4, 100), wire::Token{7, 4, 2}),
              testing::HasSubstr(R"("token":{"attempt":2,"epoch":4,"wave":7})"));
  auto elsewhere = std::make_shared<wire::EpochPlan>(*plan_of(4, 100));
  elsewhere->members[7].address = "10.0.0.9:7600";
  EXPECT_THAT(*of(elsewhere), testing::HasSubstr("10.0.0.9"));
}

}  // namespace
}  // namespace bsp::reconcile
