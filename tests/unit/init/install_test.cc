// bsp-init --install: copies the runtime out of its image.
#include "sidecar/init/install.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/core/read_file.h"

namespace bsp::init {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Install : public testing::Test {
 protected:
  Install() {
    fs::create_directories(from_ / "bin");
    fs::create_directories(from_ / "lib");
    fs::create_directories(to_);
    for (const char* name : {"bsp-init", "libbspmpi.so", "bsp-sidecar", "bin/criu", "lib/libx.so.1.2"})
      std::ofstream(from_ / name) << "content of " << name;
    for (const char* name : {"bsp-init", "bin/criu"}) fs::permissions(from_ / name, fs::perms(0755));
    fs::create_symlink("libx.so.1.2", from_ / "lib/libx.so");
    fs::create_symlink(".", from_ / "bsp");  // as in the image: following the link would recurse without end
  }
  ~Install() override { fs::remove_all(root_); }

  static std::string make_root() {
    char path[] = "/tmp/bsp-install-test-XXXXXX";
    return ::mkdtemp(path);
  }

  const fs::path root_ = make_root(), from_ = root_ / "from", to_ = root_ / "to";
};

TEST_F(Install, CopiesTheRuntimeWithModesAndLinks) {
  for (int round = 0; round < 2; ++round) {  // a kubelet may start an init container again
    const auto done = install(from_, to_);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(read_file(to_ / "bin/criu").value_or(""), "content of bin/criu");
    EXPECT_EQ(fs::status(to_ / "bin/criu").permissions(), fs::perms(0755));
    EXPECT_EQ(fs::status(to_ / "libbspmpi.so").permissions(), fs::status(from_ / "libbspmpi.so").permissions());
    EXPECT_EQ(fs::read_symlink(to_ / "lib/libx.so"), "libx.so.1.2");
    EXPECT_EQ(read_file(to_ / "lib/libx.so").value_or(""), "content of lib/libx.so.1.2");
    EXPECT_FALSE(fs::exists(to_ / "bsp-sidecar")) << "it runs in the image";
    EXPECT_FALSE(fs::exists(fs::symlink_status(to_ / "bsp")));
    std::ofstream(to_ / "bsp-init") << "cut off";
  }
  EXPECT_EQ(read_file(to_ / "bin/criu").value_or(""), "content of bin/criu");
}

TEST_F(Install, ErrorsNameTheFile) {
  fs::remove(from_ / "libbspmpi.so");
  EXPECT_THAT(install(from_, to_).error().message, HasSubstr("libbspmpi.so"));
  EXPECT_THAT(install(from_, "/proc/nothing").error().message, HasSubstr("/proc/nothing/bsp-init"));
}

}  // namespace
}  // namespace bsp::init
