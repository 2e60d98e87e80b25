// The link against peers with a wrong identity or that violate the protocol.
#include "base/net/address.h"
#include "tests/unit/net/link_world.h"

namespace bsp::net {
namespace {

// Whatever a bad peer did, the server still serves a good one.
void expect_alive(World& world) {
  auto answer = world.link().call("status", {}, 10s);
  EXPECT_TRUE(answer) << answer.error().message;
}

// A connection that sends raw bytes.
TlsStream raw(World& world) {
  Link link = world.link();
  EXPECT_TRUE(link.connect(5s));
  return std::move(link.take_over().value());
}

TEST(BadPeers, ServerHasAnotherIdentity) {
  World world(echo);
  Link link(world.ca.context("client"), {world.address(), "job-r3-g2"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
  EXPECT_NE(answer.error().message.find("the peer is \"server\", not \"job-r3-g2\""), std::string::npos);
}

TEST(BadPeers, ServerHasAnotherCa) {
  World world(echo);
  Ca other;
  Link link(other.context("client"), {world.address(), "server"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUntrusted) << answer.error().message;
}

TEST(BadPeers, ClientHasAnotherCa) {
  World world(echo);
  Ca other;
  // It trusts our CA, but another CA signed its certificate.
  Link link(world.ca.stranger(other, "client"), {world.address(), "server"});
  const auto refused = link.call("status", {}, 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUntrusted) << refused.error().message;
  expect_alive(world);
}

struct Validity {
  Duration from, to;
};
class Expired : public testing::TestWithParam<Validity> {};

TEST_P(Expired, IsRejectedByBothEnds) {
  World world(echo);
  Link link(world.ca.context("client", GetParam().from, GetParam().to), {world.address(), "server"});
  const auto refused = link.call("status", {}, 5s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUntrusted) << refused.error().message;
  expect_alive(world);

  Ca ca;
  World outdated(echo, ca.context("server", GetParam().from, GetParam().to));
  Link to_outdated(ca.context("client"), {outdated.address(), "server"});
  auto answer = to_outdated.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("certificate"), std::string::npos) << answer.error().message;
}

INSTANTIATE_TEST_SUITE_P(OutOfDate, Expired, testing::Values(Validity{-2h, -1h}, Validity{1h, 2h}),
                         [](const auto& tested) { return tested.param.to < Duration{} ? "Expired" : "NotYetValid"; });

TEST(BadPeers, NoTlsAtAll) {
  World world(echo);
  Fd socket = std::move(start_connect(parse_address(world.address()).value()).value());
  std::string_view garbage = "GET / HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 1000 && ::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL) < 0; ++i)
    std::this_thread::yield();
  expect_alive(world);
}

TEST(BadPeers, TruncatedFrame) {
  World world(echo);
  {
    TlsStream stream = raw(world);
    std::string head = encode_frame_head({{"verb", "status"}}, 100);
    ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(head)), 5s));
  }
  expect_alive(world);
}

// Sends bytes and expects the server to hang up without an answer.
void expect_hung_up(World& world, const std::string& bytes) {
  TlsStream stream = raw(world);
  ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(bytes)), 5s));
  std::byte one;
  auto got = stream.read_some(std::span(&one, 1), 10s);
  EXPECT_TRUE(!got || *got == 0);
  EXPECT_TRUE(got || got.error().code != ErrorCode::kTimeout);
}

TEST(BadPeers, OversizedHeader) {
  World world(echo);
  expect_hung_up(world, std::string("\x7f\xff\xff\xff\0\0\0\0\0\0\0\0", 12));
  expect_alive(world);
}

TEST(BadPeers, OversizedBody) {
  World world(echo);
  expect_hung_up(world, encode_frame_head({{"verb", "status"}}, kMaxBody + 1));
  expect_alive(world);
}

TEST(BadPeers, HeaderIsNotJson) {
  World world(echo);
  expect_hung_up(world, std::string("\0\0\0\x04\0\0\0\0\0\0\0\0nope", 16));
  expect_alive(world);
}

TEST(BadPeers, RequestWithoutVerb) {
  World world(echo);
  TlsStream stream = raw(world);
  std::string head = encode_frame_head({{"n", 1}}, 0);
  ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(head)), 5s));
  FrameReader reader;
  std::byte buffer[4096];
  auto n = stream.read_some(buffer, 5s);
  ASSERT_TRUE(n);
  reader.append(std::span(buffer, *n));
  auto frame = reader.next();
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ(as_answer(**frame).error().code, ErrorCode::kInvalid);
}

// How long the loop's thread computes within this time.
std::chrono::nanoseconds computed_within(World& world, std::chrono::milliseconds time) {
  const auto so_far = [&] {
    timespec used{};
    world.on_loop([&] { ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); });
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const auto before = so_far();
  std::this_thread::sleep_for(time);
  return so_far() - before;
}

// Its connection reads nothing until then, so it would not come upon the end, of which epoll tells again and again.
TEST(BadPeers, WhoseConnectionBreaksWhileItsRequestWaits) {
  std::promise<void> asked;
  std::optional<Reply> waits;  // after the World: it may outlive its connection, but not the loop
  World world([&](const Request& request, Reply reply) {
    if (request.verb != "wait") return reply.ok();
    waits = std::move(reply);
    asked.set_value();
  });
  {
    TlsStream stream = raw(world);
    const std::string head = encode_frame_head({{"verb", "wait"}}, 0);
    ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(head)), 5s));
    asked.get_future().wait();
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(stream.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  EXPECT_LT(computed_within(world, 500ms), 100ms);
  world.on_loop([&] { waits.reset(); });
  expect_alive(world);
}

TEST(BadPeers, NoListener) {
  Ca ca;
  Link link(ca.context("client"), {"127.0.0.1:1", "server"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(answer.error().retryable);
}

TEST(BadPeers, InvalidAddress) {
  for (const char* text : {"", "host:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "[::1:5", "1.2.3:4"})
    EXPECT_FALSE(parse_address(text)) << text;
  EXPECT_EQ(to_string(parse_address("127.0.0.1:7600").value()), "127.0.0.1:7600");
  EXPECT_EQ(to_string(parse_address("[::1]:7600").value()), "[::1]:7600");
}

TEST(Pki, RejectsInvalidRequests) {
  Ca ca;
  auto issue = [&](std::string identity, Duration life) {
    return issue_certificate(ca.pair(), {.identity = std::move(identity),
                                         .dns_names = {},
                                         .addresses = {},
                                         .not_before = Ca::now(),
                                         .not_after = Ca::now() + life});
  };
  EXPECT_TRUE(issue("job-r0-g1", 1h));
  EXPECT_FALSE(issue("", 1h));
  EXPECT_FALSE(issue("a,DNS:b", 1h));
  EXPECT_FALSE(issue(std::string(65, 'a'), 1h));
  EXPECT_FALSE(issue("job-r0-g1", 100h)) << "it would outlive its CA";
  EXPECT_FALSE(issue("job-r0-g1", -1h));
}

}  // namespace
}  // namespace bsp::net
