// A pod's way out to one server, of real network namespaces.
#include "operator/local/outlet.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <format>
#include <thread>

#include "operator/local/files.h"
#include "operator/local/network.h"

namespace bsp::local {
namespace {

// It answers each connection with what it was sent, in capitals, once that has ended.
class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        const Fd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client) return;
        std::string text;
        char buffer[4096];
        for (ssize_t n = 0; (n = ::recv(client.get(), buffer, sizeof buffer, 0)) > 0;)
          text.append(buffer, static_cast<std::size_t>(n));
        for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        ::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
      }
    });
  }
  ~Server() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::uint16_t port = 0;

 private:
  Fd socket_;
  std::thread thread_;
};

class OutletTest : public testing::Test {
 protected:
  OutletTest() {
    char path[] = "/tmp/bsp-outlet-test-XXXXXX";
    root_ = ::mkdtemp(path);
  }
  ~OutletTest() override {
    EXPECT_TRUE(Network(root_).remove());
    EXPECT_TRUE(remove_tree(root_));
  }
  // What a program in the namespace is answered at that address; "": nobody listens.
  static std::string asked(const std::string& path, const char* address, std::uint16_t port, const std::string& text) {
    std::string answer;
    EXPECT_TRUE(run_inside(path, [&]() -> Result<void> {
      const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      ::inet_pton(AF_INET, address, &to.sin_addr);
      if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return {};
      ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
      ::shutdown(socket.get(), SHUT_WR);
      char buffer[4096];
      for (ssize_t n = 0; (n = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;)
        answer.append(buffer, static_cast<std::size_t>(n));
      return {};
    }));
    return answer;
  }

  std::string root_;
};

TEST_F(OutletTest, APodReachesTheServerThatItMayAndNoOther) {
  const Server server, other;
  const auto pod = Network(root_).attach("a");
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(asked(pod->path, "127.0.0.1", server.port, "x"), "") << "the pods' network has no way out";
  const std::string long_one(3'000'000, 'x');
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto outlet = Outlet::open(pod->path, std::format("http://{}:{}", host, server.port));
    ASSERT_TRUE(outlet) << outlet.error().message;
    EXPECT_EQ(asked(pod->path, "127.0.0.1", server.port, "hello"), "HELLO") << host;
    EXPECT_TRUE(asked(pod->path, "127.0.0.1", server.port, long_one) == std::string(long_one.size(), 'X')) << host;
    EXPECT_EQ(asked(pod->path, "127.0.0.1", other.port, "hello"), "") << host;
    EXPECT_EQ(Outlet::host_alias(std::format("http://{}:{}", host, server.port)), "");
  }
  EXPECT_EQ(asked(pod->path, "127.0.0.1", server.port, "x"), "") << "it ends with its owner";
}

TEST_F(OutletTest, AnAddressBecomesOneOfThePod) {
  const auto pod = Network(root_).attach("a");
  ASSERT_TRUE(pod) << pod.error().message;
  // Nobody answers there (TEST-NET-1), but the pod's connection is taken. Twice: the second process finds the address there.
  for (int i = 0; i < 2; ++i) {
    const auto outlet = Outlet::open(pod->path, "https://192.0.2.7");
    ASSERT_TRUE(outlet) << outlet.error().message;
  }
}

TEST_F(OutletTest, ANameIsKnownToTheContainer) {
  EXPECT_EQ(Outlet::host_alias("https://minio.storage:9000"), "minio.storage:127.64.6.1");
  EXPECT_EQ(Outlet::host_alias("http://10.0.0.7"), "");
  EXPECT_EQ(Outlet::host_alias("minio"), "");
  const auto pod = Network(root_).attach("a");
  ASSERT_TRUE(pod) << pod.error().message;
  // A server that can't be resolved is no reason to refuse a pod.
  EXPECT_TRUE(Outlet::open(pod->path, "https://there-is-no-such-host.invalid:9000"));
  EXPECT_FALSE(Outlet::open(pod->path, "ftp://minio"));
}

}  // namespace
}  // namespace bsp::local
