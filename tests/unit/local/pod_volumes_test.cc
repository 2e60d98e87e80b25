// The files of Secrets and ConfigMaps in a pod's volume. A running pod sees a change all at once, as with a kubelet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/core/read_file.h"
#include "operator/local/pod_volumes.h"

namespace bsp::local {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  Files() {
    char name[] = "/tmp/bsp-volumes-XXXXXX";
    directory = ::mkdtemp(name);
    volume.name = "keys";
    volume.type = VolumeType::kFiles;
    volume.path = directory + "/keys";
    volume.file_mode = 0440;
    volume.files = {{"cert.pem", "old certificate"}, {"key.pem", "old key"}};
  }
  ~Files() override { fs::remove_all(directory); }

  [[nodiscard]] std::string read(const std::string& name) const {
    return read_file(volume.path + "/" + name).value_or("nothing");
  }
  std::string directory;
  VolumePlan volume{};
};

TEST_F(Files, ExistWithTheirMode) {
  ASSERT_TRUE(create_volumes({volume}));
  EXPECT_EQ(read("cert.pem"), "old certificate");
  EXPECT_EQ(read("key.pem"), "old key");
  struct stat st{};
  ASSERT_EQ(::stat((volume.path + "/key.pem").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0440U);
}

TEST_F(Files, AreReplacedTogether) {
  ASSERT_TRUE(create_volumes({volume}));
  // A reader that has opened the directory behind `..data` keeps reading the old pair, never a mix of both.
  const std::string before = fs::read_symlink(volume.path + "/..data").string();
  volume.files = {{"cert.pem", "new certificate"}, {"key.pem", "new key"}};
  ASSERT_TRUE(write_files(volume));
  EXPECT_NE(fs::read_symlink(volume.path + "/..data").string(), before);
  EXPECT_EQ(read("cert.pem"), "new certificate");
  EXPECT_EQ(read("key.pem"), "new key");
  volume.files["key.pem"] = "third key";
  ASSERT_TRUE(write_files(volume));
  EXPECT_EQ(read("key.pem"), "third key");
}

TEST_F(Files, AreAddedAndRemoved) {
  ASSERT_TRUE(create_volumes({volume}));
  volume.files = {{"cert.pem", "old certificate"}, {"more.pem", "more"}};
  ASSERT_TRUE(write_files(volume));
  EXPECT_EQ(read("more.pem"), "more");
  EXPECT_EQ(read("key.pem"), "nothing");
  EXPECT_FALSE(fs::is_symlink(volume.path + "/key.pem"));
}

TEST_F(Files, AreNotRewrittenIfUnchanged) {
  ASSERT_TRUE(create_volumes({volume}));
  const auto inode = [&] {
    struct stat st{};
    return ::stat((volume.path + "/key.pem").c_str(), &st) == 0 ? st.st_ino : 0;
  };
  const auto before = inode();
  ASSERT_TRUE(create_volumes({volume}));  // as for an adopted pod
  ASSERT_TRUE(write_files(volume));
  EXPECT_EQ(inode(), before);
}

TEST_F(Files, FromAnOlderOperatorAreReplaced) {
  fs::create_directories(volume.path);
  std::ofstream(volume.path + "/cert.pem") << "older certificate";
  ASSERT_TRUE(create_volumes({volume}));
  EXPECT_EQ(read("cert.pem"), "old certificate");
}

// As the kubelet does; what a program has put there stays.
TEST_F(Files, WhatASubPathNamesIsMadeOnce) {
  VolumePlan scratch;
  scratch.name = "scratch";
  scratch.path = directory + "/scratch";
  scratch.directories = {"seat-0", "seat-1/deep"};
  ASSERT_TRUE(create_volumes({scratch}));
  struct stat made{};
  ASSERT_EQ(::stat((scratch.path + "/seat-1/deep").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0777u);
  fs::remove(scratch.path + "/seat-0");
  fs::create_symlink(directory, scratch.path + "/seat-0");
  fs::permissions(directory, fs::perms::owner_all);
  ASSERT_TRUE(create_volumes({scratch})) << "by the next node process";
  EXPECT_TRUE(fs::is_symlink(scratch.path + "/seat-0"));
  ASSERT_EQ(::stat(directory.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u) << "a link leads nowhere";
}

}  // namespace
}  // namespace bsp::local
