// Calls outside of the workers: none is lost, and none runs twice at once.
#include "operator/reconcile/shell/call_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

namespace bsp::reconcile {
namespace {

TEST(CallPool, FinishQueuedWorkBeforeTheyStop) {
  std::atomic<int> done = 0;
  std::vector<int> order;
  std::promise<void> go;
  const std::shared_future<void> gone(go.get_future());
  {
    CallPool call_pool;
    const auto calls = std::make_shared<JobCalls>(call_pool, "ns", "ns/job", [] {});
    for (int i = 0; i < 100; ++i)
      calls->once(std::to_string(i), [&done, calls, gone] {
        gone.wait();
        ++done;
        calls->once("behind " + std::to_string(done.load()), [&done] { ++done; });
      });
    for (int i = 0; i < 50; ++i) calls->in_order([&order, i, gone] { gone.wait(), order.push_back(i); });
    EXPECT_EQ(done, 0);
    go.set_value();
  }
  EXPECT_GT(done, 100) << "those that others began too";
  ASSERT_EQ(order.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(CallPool, RunACallOnlyOnceAtATime) {
  CallPool call_pool;
  std::promise<void> go;
  std::atomic<int> changed = 0;
  const auto calls = std::make_shared<JobCalls>(call_pool, "ns", "ns/job", [&] { ++changed; });
  EXPECT_TRUE(calls->once("create Pod x", [gone = go.get_future().share()] { gone.wait(); }));
  EXPECT_FALSE(calls->once("create Pod x", [] { ADD_FAILURE(); }));
  EXPECT_TRUE(calls->under_way("create Pod x"));
  go.set_value();
  while (changed == 0) std::this_thread::yield();
  EXPECT_FALSE(calls->under_way("create Pod x"));
}

TEST(CallPool, ReportAnExceptionToItsJob) {
  CallPool call_pool;
  std::atomic<int> changed = 0;
  const auto calls = std::make_shared<JobCalls>(call_pool, "ns", "ns/job", [&] { ++changed; });
  calls->once("a", [] { check(false, "never so"); });
  while (changed == 0) std::this_thread::yield();
  const auto error = calls->take_error();
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->message.contains("never so"));
  EXPECT_FALSE(calls->take_error());
}

}  // namespace
}  // namespace bsp::reconcile
