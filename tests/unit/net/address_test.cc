// Addresses as text, and listening on all addresses of both families, with real sockets.
#include "base/net/address.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <thread>

#include "tests/unit/net/link_world.h"

namespace bsp::net {
namespace {

bool has_ipv6() { return listen_on(parse_address("[::1]:0").value()).has_value(); }

// Connects to `to` and returns the accepted client's name at `listener`, without its port; or why it can't.
std::string client_at(int listener, const std::string& to) {
  const auto address = parse_address(to);
  if (!address) return address.error().message;
  auto socket = start_connect(*address);
  if (!socket) return socket.error().message;
  pollfd writable{socket->get(), POLLOUT, 0};
  ::poll(&writable, 1, 10'000);
  if (const auto connected = finish_connect(socket->get()); !connected) return connected.error().message;
  pollfd readable{listener, POLLIN, 0};
  ::poll(&readable, 1, 10'000);
  Address from;
  from.size = sizeof from.storage;
  const Fd accepted(::accept4(listener, reinterpret_cast<sockaddr*>(&from.storage), &from.size, SOCK_CLOEXEC));
  if (!accepted) return std::strerror(errno);
  const std::string text = to_string(from);
  return text.substr(0, text.rfind(':'));
}

TEST(Address, IsReadAndWrittenInBothFamilies) {
  for (const char* text : {"10.0.0.7:7600", "0.0.0.0:1", "[::]:8081", "[fd00::7]:7600"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_string(*address), text);
  }
  for (const char* text : {"", "7600", ":7600", "10.0.0.7", "10.0.0.7:", "10.0.0.7:x", "10.0.0.7:65536", "host:1",
                           "::1:1", "[::1]", "[10.0.0.7]:1", "[::1:1", "[fe80::1%eth0]:1"})
    EXPECT_FALSE(parse_address(text)) << text;
}

// A socket of both families sees an IPv4 client at an IPv6 address; people and limits per client know it by the other.
TEST(Address, OfAnIpv4ClientOfASocketOfBothFamiliesIsItsIpv4Address) {
  EXPECT_EQ(to_string(parse_address("[::ffff:10.0.0.7]:80").value()), "10.0.0.7:80");
}

TEST(ListeningOnAllAddresses, AnswersBothFamilies) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  const auto listener = listen_on(parse_address("[::]:0").value());
  ASSERT_TRUE(listener) << listener.error().message;
  const int port = local_port(listener->get());
  int one_family = -1;
  socklen_t size = sizeof one_family;
  ASSERT_EQ(::getsockopt(listener->get(), IPPROTO_IPV6, IPV6_V6ONLY, &one_family, &size), 0);
  EXPECT_EQ(one_family, 0) << "whatever net.ipv6.bindv6only says";
  EXPECT_EQ(client_at(listener->get(), std::format("127.0.0.1:{}", port)), "127.0.0.1");
  EXPECT_EQ(client_at(listener->get(), std::format("[::1]:{}", port)), "[::1]");
}

TEST(ListeningOnAllAddresses, ALinkReachesTheServerOverEither) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6";
  World world(echo, std::nullopt, "[::]:0");
  const std::string port = world.address().substr(world.address().rfind(':'));
  for (const char* host : {"127.0.0.1", "[::1]"}) {
    const auto answer = Link(world.ca.context("client"), {host + port, "server"}).call("say", {}, 10s);
    EXPECT_TRUE(answer) << host << ": " << answer.error().message;
  }
}

// Makes socket() fail in this thread as it does under a kernel without IPv6.
void take_ipv6_away() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0) << std::strerror(errno);
}

TEST(ListeningOnAllAddresses, IsListeningOnThoseOfIpv4WhereThereIsNoIpv6) {
  std::thread([] {
    ASSERT_NO_FATAL_FAILURE(take_ipv6_away());
    const auto listener = listen_on(parse_address("[::]:0").value());
    ASSERT_TRUE(listener) << listener.error().message;
    const int port = local_port(listener->get());
    EXPECT_EQ(client_at(listener->get(), std::format("127.0.0.1:{}", port)), "127.0.0.1");
    const auto one = listen_on(parse_address("[::1]:0").value());
    ASSERT_FALSE(one) << "no other address takes its place";
    EXPECT_NE(one.error().message.find("Address family not supported"), std::string::npos) << one.error().message;
  }).join();
}

}  // namespace
}  // namespace bsp::net
