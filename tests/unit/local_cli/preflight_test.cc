// Kernels that can't checkpoint, as /proc shows them.
#include "operator/local/cli/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace bsp::local {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class KernelTest : public ::testing::Test {
 protected:
  KernelTest() {
    char path[] = "/tmp/bsp-proc-XXXXXX";
    proc_ = ::mkdtemp(path);
    fs::create_directories(proc_ + "/sys/kernel");
    fs::create_directories(proc_ + "/self");
    put("/sys/kernel/osrelease", "6.12.1-test\n");
    put("/sys/kernel/ns_last_pid", "100\n");
    put("/sys/kernel/cap_last_cap", "40\n");
    put("/self/status", "Name:\tx\nCapBnd:\t000001ffffffffff\n");
  }
  ~KernelTest() override { fs::remove_all(proc_); }
  void put(const std::string& name, const std::string& text) { std::ofstream(proc_ + name) << text; }
  std::string answer() {
    const auto checked = check_kernel(proc_);
    return checked ? "" : checked.error().message;
  }
  std::string proc_;
};

TEST_F(KernelTest, GoodOnePasses) { EXPECT_EQ(answer(), ""); }

TEST_F(KernelTest, WithoutCheckpointRestore) {
  fs::remove(proc_ + "/sys/kernel/ns_last_pid");
  EXPECT_THAT(answer(), HasSubstr("this kernel (6.12.1-test) was built without CONFIG_CHECKPOINT_RESTORE"));
}

TEST_F(KernelTest, TooOldForTheCapability) {
  put("/sys/kernel/cap_last_cap", "39\n");
  EXPECT_THAT(answer(), HasSubstr("use Linux 5.9 or newer"));
}

TEST_F(KernelTest, InAContainerThatMayNotTrace) {
  put("/self/status", "CapBnd:\t000001fffff7ffff\n");  // without bit 19
  EXPECT_THAT(answer(), HasSubstr("SYS_PTRACE"));
  EXPECT_THAT(answer(), HasSubstr("--privileged"));
}

}  // namespace
}  // namespace bsp::local
