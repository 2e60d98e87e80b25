// The pods' network, of real network namespaces.
#include "operator/local/network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <format>

#include "base/core/fd.h"
#include "operator/local/files.h"

namespace bsp::local {
namespace {

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    char path[] = "/tmp/bsp-network-test-XXXXXX";
    root_ = ::mkdtemp(path);
  }
  ~NetworkTest() override {
    EXPECT_TRUE(Network(root_).remove());
    EXPECT_TRUE(remove_tree(root_));
  }

  std::string root_;
};

// Of the bridge.
Result<std::string> hardware_address(const Network& network) {
  std::string text;
  BSP_CHECK_OK(run_inside(network.hub_path(), [&]() -> Result<void> {
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{.ifr_ifrn = {.ifrn_name = "br0"}, .ifr_ifru = {}};
    if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0) return fail_errno("br0");
    for (int i = 0; i < 6; ++i)
      text += std::format("{:02x} ", static_cast<unsigned char>(request.ifr_hwaddr.sa_data[i]));
    return {};
  }));
  return text;
}

// Else pods would lose the bridge until their ARP entries expire.
TEST_F(NetworkTest, TheBridgeKeepsItsHardwareAddressWhilePodsComeAndGo) {
  const Network network(root_);
  ASSERT_TRUE(network.hub());
  const auto first = hardware_address(network);
  ASSERT_TRUE(first) << first.error().message;
  for (const char* pod : {"a", "b", "c"}) {
    const auto attached = network.attach(pod);
    ASSERT_TRUE(attached) << attached.error().message;
    EXPECT_EQ(hardware_address(network).value_or("unknown"), *first) << pod << " has come";
  }
  for (const char* pod : {"a", "b", "c"}) {
    ASSERT_TRUE(network.detach(pod));
    EXPECT_EQ(hardware_address(network).value_or("unknown"), *first) << pod << " is gone";
  }
}

}  // namespace
}  // namespace bsp::local
