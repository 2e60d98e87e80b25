// A Node that is deleted under ranks: they run on, and have to leave it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/kernel/drain.h"
#include "tests/unit/reconcile/forwarding_client.h"
#include "tests/unit/reconcile/stored_jobs.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class AbsentNode : public StoredJobs {};

TEST_F(AbsentNode, ThatWasDeletedIsLeft) {
  ASSERT_NO_FATAL_FAILURE(add("job", [](json&) {}));
  start({.scheduled = true});
  const kube::Object node = store_->get({kNode, "", "slow-0"}).value();
  ASSERT_TRUE(store_->remove({kNode, "", "slow-0"}, kube::metadata_text(node, "uid")));
  EXPECT_TRUE(eventually([&] { return !told("job", kDraining).empty(); })) << read_job("job");
  EXPECT_THAT(told("job", kDraining), HasSubstr("node slow-0 was deleted, and rank 0 must leave it"));
  EXPECT_FALSE(is_gone("job-r0-g0"));
}

}  // namespace
}  // namespace bsp::reconcile
