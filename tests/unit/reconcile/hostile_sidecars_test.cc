// Hostile sidecars over real links: whatever they send, the operator still hears the honest one, names the one that it
// distrusts, and holds no more memory than for their connections.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/net/address.h"
#include "base/net/tls_connection.h"
#include "operator/reconcile/shell/links/links.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using net::Ca;
using nlohmann::json;

// A server of raw bytes: `reply` says what a request is answered with, byte for byte.
class HostileServer {
 public:
  using ReplyTo = std::function<std::string(const json& request, std::size_t number)>;

  HostileServer(net::Loop& loop, net::TlsContext tls, ReplyTo reply)
      : loop_(loop),
        tls_(std::move(tls)),
        reply_(std::move(reply)),
        listener_(net::listen_on(net::parse_address("127.0.0.1:0").value()).value()) {
    loop_.watch(listener_.get(), EPOLLIN, [this](net::Loop::Events) { accept_one(); });
  }
  ~HostileServer() {
    loop_.unwatch(listener_.get());
    for (auto& connection : connections_) connection->close();
  }
  std::string address() const { return std::format("127.0.0.1:{}", net::local_port(listener_.get())); }
  std::size_t asked() const { return asked_.load(); }
  std::size_t connections() const { return accepted_.load(); }

 private:
  void accept_one() {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    ++accepted_;
    auto connection = std::make_shared<std::weak_ptr<net::TlsConnection>>();
    connections_.push_back(std::make_shared<net::TlsConnection>(
        loop_, net::TlsSocket(tls_, std::move(socket), net::TlsRole::kServer), net::TlsRole::kServer,
        net::TlsConnection::Events{.ready = {},
                                   .limits = [] { return net::kAnyFrame; },
                                   .frame =
                                       [this, connection](net::Frame frame) {
                                         const std::string bytes = reply_(frame.header, asked_++);
                                         if (auto self = connection->lock(); self && !bytes.empty())
                                           self->send(bytes, {});
                                       },
                                   .closed = {}}));
    *connection = connections_.back();
    connections_.back()->start();
  }

  net::Loop& loop_;
  net::TlsContext tls_;
  ReplyTo reply_;
  Fd listener_;
  std::vector<std::shared_ptr<net::TlsConnection>> connections_;
  std::atomic<std::size_t> asked_ = 0, accepted_ = 0;
};

std::string frame_of(const std::string& header) {
  std::string frame = net::encode_frame_head(json::object(), 0).substr(0, net::kFramePrefix);
  for (int i = 0; i < 4; ++i) frame[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (24 - 8 * i));
  return frame + header;
}

json a_status(std::uint64_t version) {
  wire::RankStatus status;
  status.version = version;
  status.phase = wire::RankPhase::kRunning;
  status.completed = 7;
  json j = status;
  j["ok"] = true;
  return j;
}

// Answers a watch like an honest sidecar whose status is unchanged, but at once every time.
std::string honest(const json& request, std::size_t) {
  if (request.value("version", std::uint64_t{0}) == 1) return {};  // waits for a change
  return net::encode_frame_head(a_status(1), 0);
}

long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  return -1;
}

class HostileSidecars : public testing::Test {
 protected:
  ~HostileSidecars() override {
    sidecars_.reset();
    theirs_.run([&] { servers_.clear(); });
  }

  HostileServer& add(const std::string& pod, HostileServer::ReplyTo reply) {
    HostileServer* server = nullptr;
    theirs_.run([&] {
      servers_.push_back(std::make_unique<HostileServer>(theirs_.loop, ca_.context(pod), std::move(reply)));
      server = servers_.back().get();
    });
    pods_[{pod}] = server->address();
    return *server;
  }
  void track() {
    sidecars_ = std::make_unique<Sidecars>(
        thread_, Sidecars::Options{.tls = ca_.context("operator"), .changed = [this] { ++notified_; }});
    sidecars_->track(pods_);
  }
  // Waits for something the facts must come to say.
  bool comes(const std::function<bool(const std::map<Seat, SidecarFacts>&)>& what) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!what(sidecars_->facts())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
      ::poll(nullptr, 0, 5);
    }
    return true;
  }
  static bool heard(const std::map<Seat, SidecarFacts>& facts, const std::string& pod) {
    const auto it = facts.find({pod});
    return it != facts.end() && it->second.status && it->second.unreachable_since == SteadyTime{};
  }
  static std::string rejected(const std::map<Seat, SidecarFacts>& facts, const std::string& pod) {
    const auto it = facts.find({pod});
    return it == facts.end() ? "" : it->second.rejected;
  }

  Ca ca_;
  std::vector<std::unique_ptr<HostileServer>> servers_;
  std::map<Seat, std::string> pods_;
  SidecarThread thread_{""};
  std::unique_ptr<Sidecars> sidecars_;
  std::atomic<std::size_t> notified_ = 0;
  net::LoopThread theirs_;
};

struct Hostile {
  const char* name;
  HostileServer::ReplyTo reply;
  const char* rejected;  // part of the message about it; "": it is only unheard
};
void PrintTo(const Hostile& h, std::ostream* os) { *os << h.name; }

std::string with(const char* field, json value) {
  json j = a_status(2);
  j[field] = std::move(value);
  return net::encode_frame_head(j, 0);
}

class OneHostileSidecar : public HostileSidecars, public testing::WithParamInterface<Hostile> {};

TEST_P(OneHostileSidecar, TheHonestOneIsHeardAndTheHostileOneNamed) {
  add("honest", honest);
  add("hostile", GetParam().reply);
  track();
  const std::string why = GetParam().rejected;
  EXPECT_TRUE(comes([&](const auto& facts) {
    const auto it = facts.find({"hostile"});
    if (!heard(facts, "honest") || it == facts.end()) return false;
    if (why.empty()) return it->second.unreachable_since != SteadyTime{};
    return it->second.rejected.find(why) != std::string::npos;
  })) << "said: "
      << rejected(sidecars_->facts(), "hostile");
  EXPECT_TRUE(why.empty() || thread_.rejected() > 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, OneHostileSidecar,
    testing::Values(
        Hostile{"Garbage", [](const json&, std::size_t) { return std::string(4096, '\x01'); }, "exceeds the limits"},
        Hostile{"NoJson", [](const json&, std::size_t) { return frame_of("nope"); }, "not valid JSON"},
        Hostile{"AList", [](const json&, std::size_t) { return frame_of("[1,2]"); }, "not a JSON object"},
        Hostile{"DeepNesting",
                [](const json&, std::size_t) {
                  return frame_of("{\"x\":" + std::string(30'000, '[') + std::string(30'000, ']') + "}");
                },
                "values, more than"},
        Hostile{"Nesting",
                [](const json&, std::size_t) {
                  return frame_of("{\"x\":" + std::string(20, '[') + std::string(20, ']') + "}");
                },
                "levels, more than"},
        Hostile{"HugeCount",
                [](const json&, std::size_t) {
                  std::string list = "{\"x\":[0";
                  for (int i = 0; i < 10'000; ++i) list += ",0";
                  return frame_of(list + "]}");
                },
                "values, more than"},
        Hostile{"HugeHeader",
                [](const json&, std::size_t) { return std::string("\x7f\xff\xff\xff\0\0\0\0\0\0\0\0", 12); },
                "exceeds the limits"},
        Hostile{"ABody", [](const json&, std::size_t) { return net::encode_frame_head(a_status(2), 1000); },
                "exceeds the limits"},
        Hostile{"NoStatus", [](const json&, std::size_t) { return frame_of("{\"ok\":true}"); }, "is required"},
        Hostile{"NegativeVersion", [](const json&, std::size_t) { return with("version", -1); },
                "must not be negative"},
        Hostile{"HugeRank", [](const json&, std::size_t) { return with("rank", 1ull << 40); }, "is too large"},
        Hostile{"FractionOfASuperstep", [](const json&, std::size_t) { return with("completed", 0.5); },
                "must be a whole number"},
        Hostile{"BeyondANumber", [](const json&, std::size_t) { return with("completed", 1e300); }, "is too large"},
        Hostile{"NothingButACut", [](const json&, std::size_t) { return frame_of("").substr(0, 5); }, ""},
        Hostile{"AnErrorOfManyWords",
                [](const json&, std::size_t) {
                  return frame_of(json{{"error", {{"code", "Invalid"}, {"message", std::string(60'000, 'x')}}}}.dump());
                },
                "xxxxxxxx"}),
    [](const auto& tested) { return tested.param.name; });

// The second answer belongs to no request and ends the connection; the first of each connection counts.
TEST_F(HostileSidecars, UnrequestedAnswersEndTheConnection) {
  HostileServer& server = add("chatty", [](const json&, std::size_t n) {
    const std::string one = net::encode_frame_head(a_status(n + 2), 0);
    return one + one + one;
  });
  add("honest", honest);
  track();
  ASSERT_TRUE(comes([&](const auto& facts) { return heard(facts, "honest") && server.asked() >= 3; }));
  // Each connection has delivered one status, never the unrequested one.
  EXPECT_TRUE(comes([&](const auto&) { return server.connections() >= 3; })) << server.connections();
}

TEST_F(HostileSidecars, ClaimsAreCutToTheWiresLimits) {
  add("a", [](const json&, std::size_t n) {
    json j = a_status(n + 2);
    j["completed"] = ~0ull;
    j["blocked_reason"] = std::string(20'000, 'x');
    j["exit_message"] = std::string(20'000, 'y');
    j["opened_ns"] = ~0ull;
    j["throttled"] = -1e308;
    return net::encode_frame_head(j, 0);
  });
  track();
  ASSERT_TRUE(comes([](const auto& facts) { return heard(facts, "a"); }));
  const SidecarFacts facts = sidecars_->facts().at({"a"});
  EXPECT_EQ(facts.completed, wire::kMostSupersteps);
  EXPECT_EQ(facts.status->blocked_reason.size(), wire::kMostText);
  EXPECT_EQ(facts.status->exit_message.size(), wire::kMostText);
  EXPECT_EQ(facts.status->opened_ns, wire::kMostNs);
  EXPECT_EQ(facts.throttled, 0);
}

TEST_F(HostileSidecars, OneFarAheadOfAllOthersIsNotBelieved) {
  const auto at = [](std::uint64_t completed) {
    return [completed](const json& request, std::size_t) {
      if (request.value("version", std::uint64_t{0}) == 1) return std::string();
      json j = a_status(1);
      j["completed"] = completed;
      return net::encode_frame_head(j, 0);
    };
  };
  add("r0", at(100));
  add("r1", at(101));
  add("liar", at(1ull << 47));
  add("r3", at(100));
  track();
  ASSERT_TRUE(comes([](const auto& facts) {
    return heard(facts, "r0") && heard(facts, "r1") && heard(facts, "r3") && heard(facts, "liar");
  }));
  const auto facts = sidecars_->facts();
  EXPECT_EQ(facts.at({"r1"}).completed, 101u);
  EXPECT_EQ(facts.at({"liar"}).completed, 100u);
  EXPECT_NE(facts.at({"liar"}).rejected.find("claims to have completed superstep 140737488355328"), std::string::npos);
  EXPECT_EQ(facts.at({"r0"}).rejected, "");
}

// Each answer is a new version, at once: the requests are limited, whatever the network can carry.
TEST_F(HostileSidecars, EndlessPushesAreThrottled) {
  HostileServer& pushing =
      add("pushing", [](const json&, std::size_t n) { return net::encode_frame_head(a_status(n + 2), 0); });
  add("honest", honest);
  track();
  ASSERT_TRUE(comes([&](const auto& facts) { return heard(facts, "honest") && pushing.asked() >= 200; }));
  const auto from = std::chrono::steady_clock::now();
  const std::size_t before = pushing.asked();
  ASSERT_TRUE(comes([&](const auto&) { return pushing.asked() >= before + 20; }));
  // An upper limit on the rate: ten a second, and the rest of the first burst.
  const std::size_t asked = pushing.asked() - before;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  EXPECT_LE(static_cast<double>(asked), 30 + 12 * seconds);
}

TEST_F(HostileSidecars, HundredsOfHalfFramesAtTheirLimitCostNoMoreThanTheirConnections) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr std::size_t kMany = 300;  // on a starved machine more handshakes at once would all take too long
  ASSERT_GT(files.rlim_cur, 4 * kMany);
  const std::size_t limit = wire::answer_limits(wire::kWatch).json.bytes;
  // All but the last byte, and then nothing.
  // The servers answer until the fixture ends, after this function.
  const auto half =
      std::make_shared<const std::string>(frame_of(std::string(limit, ' ')).substr(0, net::kFramePrefix + limit - 1));
  const auto sent = std::make_shared<std::atomic<std::size_t>>(0);
  for (std::size_t i = 0; i < kMany; ++i)
    add(std::format("hostile-{}", i), [half, sent](const json&, std::size_t) {
      ++*sent;
      return *half;
    });
  add("honest", honest);
  const long before = resident_kib();
  track();
  EXPECT_TRUE(comes([&](const auto& facts) { return heard(facts, "honest") && *sent >= kMany / 2; })) << *sent;
  // Both ends are in this process: per link 64 KiB here, as much to be sent there, and two ends of TLS.
  EXPECT_LT(resident_kib() - before, 350 * long{kMany});
}

}  // namespace
}  // namespace bsp::reconcile
