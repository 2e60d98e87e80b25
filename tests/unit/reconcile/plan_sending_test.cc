// An epoch's plan goes to every rank, a few at a time, over real links to sidecars that answer late.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <vector>

#include "base/json/fields.h"
#include "operator/reconcile/shell/links/links.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class SlowSidecars {
 public:
  explicit SlowSidecars(std::size_t ranks) {
    wire::EpochPlan plan{.epoch = 1, .pmix_namespace = "uid-e1", .sets = {"slow"}, .members = {}};
    thread_.run([&] {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::string pod = std::format("job-{}", rank);
        servers_.push_back(net::LinkServer::listen(
                               thread_.loop, ca_.context(pod), "127.0.0.1:0",
                               [this](net::Request request, net::Reply reply) { answer(request, std::move(reply)); })
                               .value());
        pods_[{pod}] = std::format("127.0.0.1:{}", servers_.back()->port());
        plan.members.push_back({rank, pod, "uid", pods_[{pod}], 0});
      }
    });
    plan_ = std::make_shared<const wire::EpochPlan>(std::move(plan));
  }
  ~SlowSidecars() {
    thread_.run([&] {
      watches_.clear();
      waiting_.clear();
      servers_.clear();
    });
  }

  net::TlsContext operators() { return ca_.context("operator"); }
  [[nodiscard]] const std::map<Seat, std::string>& pods() const { return pods_; }
  [[nodiscard]] const migrate::Action::Plan& plan() const { return plan_; }
  [[nodiscard]] std::size_t prepared() const { return prepared_; }
  [[nodiscard]] std::size_t most_at_once() const { return most_; }

 private:
  void answer(const net::Request& request, net::Reply reply) {
    wire::RankStatus status;
    status.version = 1;
    if (request.verb == wire::kWatch && count_at<std::uint64_t>(request.fields, "version") == 1)
      return watches_.push_back(std::move(reply));  // nothing changes
    if (request.verb != wire::kPrepareEpoch) return reply.ok(json(status));
    waiting_.push_back(std::move(reply));
    most_ = std::max<std::size_t>(most_, waiting_.size());
    thread_.loop.after(500ms, [this, arrived = ++arrived_] {
      if (arrived == arrived_) answer_all();  // no more have come
    });
  }
  void answer_all() {
    prepared_ += waiting_.size();
    for (net::Reply& reply : std::exchange(waiting_, {})) reply.ok();
  }

  net::Ca ca_;
  std::vector<std::unique_ptr<net::LinkServer>> servers_;
  std::vector<net::Reply> watches_, waiting_;
  std::map<Seat, std::string> pods_;
  migrate::Action::Plan plan_;
  std::size_t arrived_ = 0;
  std::atomic<std::size_t> prepared_ = 0, most_ = 0;
  net::LoopThread thread_;
};

void wait_until(const std::function<bool()>& what) {
  while (!what()) ::poll(nullptr, 0, 10);
}

TEST(SendingPlans, NoMoreThanAFewAreUnderWay) {
  constexpr std::size_t kRanks = 3 * Sidecars::kPlansAtOnce;
  SlowSidecars theirs(kRanks);
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = theirs.operators(), .changed = {}});
  sidecars.track(theirs.pods());
  wait_until([&] {
    return std::ranges::count_if(sidecars.facts(), [](const auto& entry) { return entry.second.status.has_value(); }) ==
           static_cast<std::ptrdiff_t>(kRanks);
  });
  for (const auto& [seat, address] : theirs.pods()) sidecars.call(migrate::Action::prepare_epoch(seat, theirs.plan()));
  wait_until([&] { return theirs.prepared() == kRanks; });
  EXPECT_LE(theirs.most_at_once(), Sidecars::kPlansAtOnce);
}

}  // namespace
}  // namespace bsp::reconcile
