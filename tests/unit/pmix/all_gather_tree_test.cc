// All-gathers of many servers in one process: who sends how much, and that everyone gets the whole whatever is lost on its way.
#include <gtest/gtest.h>

#include <format>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "crds/requests.h"
#include "crds/wire.h"
#include "sidecar/agent/pmix/all_gather.h"

namespace bsp::pmix {
namespace {

class Servers {
 public:
  explicit Servers(std::uint32_t size) : sent_(size) {
    Placement placement{.server_of = std::vector<std::uint32_t>(size)};
    std::iota(placement.server_of.begin(), placement.server_of.end(), 0u);
    for (std::uint32_t from = 0; from < size; ++from)
      all_.push_back(std::make_unique<AllGather>(
          loop_, 1, placement, from,
          [this, from](std::uint32_t to, std::string_view verb, nlohmann::json fields, std::string body,
                       net::LinkPeer::Done done) {
            sent_[from] += body.size();
            loop_.post([this, from, to, verb = std::string(verb), fields = std::move(fields), body = std::move(body),
                        done = std::move(done)]() mutable {
              arrive(from, to, verb, fields, std::move(body), std::move(done));
            });
          }));
  }

  // How many have the whole, of collectives in which each contributes `bytes`.
  std::size_t fence(std::size_t bytes) {
    std::string whole;
    for (std::uint32_t rank = 0; rank < all_.size(); ++rank) whole += part(rank, bytes);
    std::size_t have = 0;
    for (std::uint32_t rank = 0; rank < all_.size(); ++rank)
      all_[rank]->enter("fence", {}, part(rank, bytes),
                        [&](const Result<Gathered>& all) { have += all && all->data == whole; });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (have < all_.size() && std::chrono::steady_clock::now() < until) loop_.run_due();
    return have;
  }
  [[nodiscard]] std::size_t sent(std::uint32_t server) const { return sent_[server]; }

  std::set<std::uint32_t> lose_first, pass_nothing_on;

 private:
  static std::string part(std::uint32_t rank, std::size_t bytes) {
    return std::string(bytes, static_cast<char>('a' + rank % 26));
  }
  void arrive(std::uint32_t from, std::uint32_t to, const std::string& verb, const nlohmann::json& fields,
              std::string body, net::LinkPeer::Done done) {
    const auto answer = [&done](Result<void> result, nlohmann::json header = nlohmann::json::object()) {
      done(result ? Result<net::Answer>(net::Answer{std::move(header), {}}) : std::unexpected(result.error()));
    };
    AllGather& server = *all_[to];
    if (verb == wire::kGather) return answer(server.gather(fields.at("key").get<std::string>(), from, std::move(body)));
    if (verb == wire::kPing) return answer({});
    if (lose_first.erase(to) > 0) return done(fail(ErrorCode::kUnavailable, "the connection is lost", true));
    auto asked = wire::read_request<wire::DeliverRequest>(fields).value();
    if (pass_nothing_on.contains(to)) asked.onward.clear();
    server.deliver(asked.key, Gathered{std::move(body), *asked.context_id}, asked.onward,
                   [to, this, done = std::make_shared<net::LinkPeer::Done>(std::move(done))](std::uint64_t onward) {
                     nlohmann::json header = nlohmann::json::object();
                     if (!pass_nothing_on.contains(to)) header = reflect::write(wire::DeliverAnswer{onward});
                     (*done)(net::Answer{std::move(header), {}});
                   });
  }

  net::Loop loop_;
  std::vector<std::size_t> sent_;
  std::vector<std::unique_ptr<AllGather>> all_;
};

TEST(AllGatherTree, NobodySendsTheWholeToMoreThanAFew) {
  constexpr std::size_t kBytes = 16;
  for (const std::uint32_t size : {2u, 9u, 10u, 100u, 1000u}) {
    Servers servers(size);
    EXPECT_EQ(servers.fence(kBytes), size);
    for (std::uint32_t server = 0; server < size; ++server)
      EXPECT_LE(servers.sent(server), AllGather::kFanOut * size * kBytes + kBytes) << server << " of " << size;
  }
}

TEST(AllGatherTree, WhoeverWasMissedGetsItFromTheOneThatAsked) {
  Servers servers(200);
  servers.lose_first = {1, 2, 30, 77, 199};
  EXPECT_EQ(servers.fence(16), 200u);
}

TEST(AllGatherTree, AnOlderServerPassesNothingOnAndNobodyIsMissed) {
  Servers servers(200);
  for (std::uint32_t server = 1; server < 200; server += 3) servers.pass_nothing_on.insert(server);
  EXPECT_EQ(servers.fence(16), 200u);
}

}  // namespace
}  // namespace bsp::pmix
