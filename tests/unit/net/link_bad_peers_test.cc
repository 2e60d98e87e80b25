// The link against ends that are not who they should be, or do not speak as they should.
#include "base/net/address.h"
#include "tests/unit/net/link_world.h"

namespace bsp::net {
namespace {

// After whatever a bad peer did, an honest one is served.
void expect_alive(World& world) {
  auto answer = world.link().call("status", {}, 10s);
  EXPECT_TRUE(answer) << answer.error().message;
}

// A connection that is open to raw bytes.
TlsStream raw(World& world) {
  Link link = world.link();
  EXPECT_TRUE(link.connect(5s));
  return std::move(link.take_over().value());
}

TEST(BadPeers, TheServerIsSomebodyElse) {
  World world(echo);
  Link link(world.ca.context("client"), {world.address(), "job-r3-g2"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
  EXPECT_NE(answer.error().message.find("the peer is \"server\", not \"job-r3-g2\""), std::string::npos);
}

TEST(BadPeers, TheServerIsOfAnotherCa) {
  World world(echo);
  Ca other;
  Link link(other.context("client"), {world.address(), "server"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUntrusted) << answer.error().message;
}

TEST(BadPeers, TheClientIsOfAnotherCa) {
  World world(echo);
  Ca other;
  // It believes our CA, but its own certificate is another's.
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

TEST_P(Expired, IsRefusedAtBothEnds) {
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

TEST(BadPeers, AFrameThatIsCutShort) {
  World world(echo);
  {
    TlsStream stream = raw(world);
    std::string head = encode_frame_head({{"verb", "status"}}, 100);
    ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(head)), 5s));
  }
  expect_alive(world);
}

// Sends bytes and expects that the server hangs up without a word.
void expect_hung_up(World& world, const std::string& bytes) {
  TlsStream stream = raw(world);
  ASSERT_TRUE(stream.write_all(std::as_bytes(std::span(bytes)), 5s));
  std::byte one;
  auto got = stream.read_some(std::span(&one, 1), 10s);
  EXPECT_TRUE(!got || *got == 0);
  EXPECT_TRUE(got || got.error().code != ErrorCode::kTimeout);
}

TEST(BadPeers, AHeaderLargerThanTheLimit) {
  World world(echo);
  expect_hung_up(world, std::string("\x7f\xff\xff\xff\0\0\0\0\0\0\0\0", 12));
  expect_alive(world);
}

TEST(BadPeers, ABodyLargerThanTheLimit) {
  World world(echo);
  expect_hung_up(world, encode_frame_head({{"verb", "status"}}, kMaxBody + 1));
  expect_alive(world);
}

TEST(BadPeers, AHeaderThatIsNoJson) {
  World world(echo);
  expect_hung_up(world, std::string("\0\0\0\x04\0\0\0\0\0\0\0\0nope", 16));
  expect_alive(world);
}

TEST(BadPeers, ARequestWithoutAVerb) {
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

TEST(BadPeers, NobodyListens) {
  Ca ca;
  Link link(ca.context("client"), {"127.0.0.1:1", "server"});
  auto answer = link.call("status", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(answer.error().retryable);
}

TEST(BadPeers, AnAddressThatIsNone) {
  for (const char* text : {"", "host:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "[::1:5", "1.2.3:4"})
    EXPECT_FALSE(parse_address(text)) << text;
  EXPECT_EQ(to_string(parse_address("127.0.0.1:7600").value()), "127.0.0.1:7600");
  EXPECT_EQ(to_string(parse_address("[::1]:7600").value()), "[::1]:7600");
}

TEST(Pki, RefusesWhatCouldNotWork) {
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
