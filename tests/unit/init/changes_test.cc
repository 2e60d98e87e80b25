// What the program has changed since a given time, found without a container: the whole tree is read here.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/core/fd.h"
#include "base/core/read_file.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/carry_format.h"
#include "sidecar/init/changes.h"
#include "sidecar/init/inspect.h"
#include "tests/unit/init/few_descriptors.h"

namespace bsp::init {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class ChangedTree : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/bsp-changes-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(root_ + "/image/below");
    std::ofstream(root_ + "/image/old") << "old";
    std::ofstream(root_ + "/image/removed") << "removed";
    start_ = after_a_tick();
  }
  void TearDown() override { fs::remove_all(root_); }

  // Waits until the coarse clock has passed everything done so far: it advances by ticks, with a delay.
  static std::int64_t after_a_tick() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    while (ChangeClock().since_ns() <= now.tv_sec * 1'000'000'000LL + now.tv_nsec) ::usleep(1000);
    return ChangeClock().since_ns();
  }

  Changes find(std::int64_t since) {
    Changes changes;
    const auto found = find_changes(root_, {.image_ns = since, .program_ns = since}, Place::kImage, changes);
    EXPECT_TRUE(found) << found.error().message;
    return changes;
  }

  std::string root_;
  std::int64_t start_ = 0;
};

TEST_F(ChangedTree, IsWhatTheProgramHasChanged) {
  EXPECT_THAT(find(start_).paths, IsEmpty());
  std::ofstream(root_ + "/image/old", std::ios::app) << "!";
  fs::create_directory(root_ + "/made");
  std::ofstream(root_ + "/made/file") << "12345";
  const Changes changes = find(start_);
  EXPECT_THAT(changes.paths, UnorderedElementsAre(root_ + "/image/old", root_ + "/made", root_ + "/made/file"));
  EXPECT_EQ(changes.bytes, 4U + 5U);
  EXPECT_EQ(changes.largest, root_ + "/made/file");
  const std::int64_t later = after_a_tick();
  EXPECT_THAT(find(later).paths, IsEmpty());
  // A program can't hide a change by setting file times.
  fs::last_write_time(root_ + "/made/file", fs::file_time_type::clock::now() - std::chrono::hours(1000));
  EXPECT_THAT(find(later).paths, UnorderedElementsAre(root_ + "/made/file"));
}

TEST_F(ChangedTree, IncludesRemovedNames) {
  fs::remove(root_ + "/image/removed");
  const Changes changes = find(start_);
  ASSERT_EQ(changes.directories.size(), 1U);
  EXPECT_EQ(changes.directories[0].path, root_ + "/image");
  const std::string archive = root_ + ".tar";
  {
    const Fd fd(::open(archive.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(write_carry({}, changes, fd.get()));
  }
  // The other pod: its image is unchanged, and the runtime has added a file.
  std::ofstream(root_ + "/image/removed") << "removed";
  const std::int64_t container = after_a_tick();
  std::ofstream(root_ + "/image/of-the-runtime") << "x";
  const std::int64_t start = after_a_tick();
  auto back = read_carry(archive, {.image_ns = container, .program_ns = start});
  EXPECT_TRUE(back) << back.error().message;
  EXPECT_FALSE(fs::exists(root_ + "/image/removed"));
  EXPECT_TRUE(fs::exists(root_ + "/image/of-the-runtime"));
  EXPECT_EQ(read_file(root_ + "/image/old").value_or(""), "old");
  // And one with another image under the same tag.
  fs::remove(root_ + "/image/old");
  back = read_carry(archive, {.image_ns = container, .program_ns = start});
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr(root_ + "/image/old was in the image that the program started from"));
  fs::remove(archive);
}

TEST_F(ChangedTree, OfDevHasNoDeviceNodes) {
  ASSERT_EQ(::mknod((root_ + "/node").c_str(), S_IFCHR | 0666, 0), 0);
  std::ofstream(root_ + "/made") << "made";
  Changes changes;
  ASSERT_TRUE(find_changes(root_, {.program_ns = start_}, Place::kDevices, changes));
  EXPECT_THAT(changes.paths, UnorderedElementsAre(root_ + "/made"));
  EXPECT_THAT(changes.directories, IsEmpty());
}

TEST(Mounts, TheLastOneAtAPathCounts) {
  constexpr const char* kInfo =
      "500 400 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/x\n"
      "501 500 0:51 / /dev rw,nosuid master:3 shared:4 - tmpfs tmpfs rw,size=65536k\n"
      "502 501 0:52 / /dev/shm rw - ext4 /dev/sda rw\n";
  EXPECT_EQ(mounted_type(kInfo, "/"), "overlay");
  EXPECT_EQ(mounted_type(kInfo, "/dev"), "tmpfs");
  EXPECT_EQ(mounted_type(kInfo, "/dev/sh"), "");
  EXPECT_EQ(mounted_type(kInfo + std::string("503 501 0:5 / /dev rw - devtmpfs udev rw\n"), "/dev"), "devtmpfs");
}

// Otherwise the program's files would be lost, and those of the image removed at the target.
TEST_F(ChangedTree, IsNotEmptyIfItCantBeListed) {
  std::ofstream(root_ + "/made") << "made";
  Changes changes;
  const FewDescriptors one(1);
  const auto found = find_changes(root_, {.image_ns = start_, .program_ns = start_}, Place::kImage, changes);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("listing " + root_));
}

TEST_F(ChangedTree, KeepsNoRemovedNameIfItCantBeListed) {
  fs::remove(root_ + "/image/removed");
  const Changes changes = find(start_);
  const std::string archive = root_ + ".tar";
  {
    const Fd fd(::open(archive.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(write_carry({}, changes, fd.get()));
  }
  {
    const FewDescriptors one(1);
    const auto back = read_carry(archive, {.image_ns = start_, .program_ns = start_});
    ASSERT_FALSE(back);
    EXPECT_THAT(back.error().message, HasSubstr("listing " + root_ + "/image"));
  }
  fs::remove(archive);
}

TEST(ChangedDirectories, RoundTripAnyName) {
  const std::vector<ChangedDirectory> directories = {
      {"/a b\n", {{NameKind::kRequired, "D"}, {NameKind::kPossible, "E x"}, {NameKind::kSocket, "7 \xff", 0640}}},
      {"/", {}}};
  const auto back = decode_directories(encode_directories(directories));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), 2U);
  EXPECT_EQ(back->at(0).path, "/a b\n");
  ASSERT_EQ(back->at(0).names.size(), 3U);
  EXPECT_EQ(back->at(0).names[1].name, "E x");
  EXPECT_EQ(back->at(0).names[2].name, "7 \xff");
  EXPECT_EQ(back->at(0).names[2].mode, 0640U);
  EXPECT_EQ(back->at(1).path, "/");
  for (const char* bad : {"D/x", "E", "Ename", "x"}) EXPECT_FALSE(decode_directories(bad)) << bad;
  EXPECT_FALSE(decode_directories(std::string_view("Ename\0", 6)));
}

TEST(Carried, FitsOrNamesTheLargestFile) {
  const std::uint64_t memory = dumped_memory(
      "Name:\tx\nVmRSS:\t 999999 kB\nRssAnon:\t    3072 kB\nRssFile:\t 900000 kB\nRssShmem:\t 1024 kB\nVmSwap:\t0 "
      "kB\n");
  EXPECT_EQ(memory, 4U << 20);
  Changes changes;
  EXPECT_TRUE(check_fits(changes, memory, 1 << 20));  // nothing is carried: the memory alone is checked elsewhere
  changes = {
      .paths = {"/work/x"}, .directories = {}, .bytes = 13 << 20, .largest = "/work/x", .largest_bytes = 9 << 20};
  EXPECT_TRUE(check_fits(changes, memory, 0));
  EXPECT_TRUE(check_fits(changes, memory, 17 << 20));
  const auto not_enough = check_fits(changes, memory, 16 << 20);
  ASSERT_FALSE(not_enough);
  EXPECT_EQ(
      not_enough.error().message,
      "not migratable now: /work/x, which the program has written in its pod, can't be moved: the program has written "
      "13.0 MiB there, which with 4.0 MiB of memory exceeds spec.checkpoint.sizeLimit, "
      "16.0 MiB; raise the limit, or write it to a volume that all pods mount");
}

TEST(OpenFiles, AreReopenedWithTheirMode) {
  EXPECT_EQ(access_mode("pos:\t0\nflags:\t0100000\nmnt_id:\t1\n"), R_OK);
  EXPECT_EQ(access_mode("pos:\t0\nflags:\t02100001\n"), W_OK);
  EXPECT_EQ(access_mode("pos:\t0\nflags:\t0102002\n"), R_OK | W_OK);
  EXPECT_EQ(access_mode("pos:\t0\nflags:\t012000000\n"), F_OK);
}

TEST(Inspect, ReadsAnEventfdsCount) {
  EXPECT_EQ(eventfd_count("pos:\t0\nflags:\t02\neventfd-count:         fffffffe\neventfd-id: 3\n"), 0xfffffffe);
  EXPECT_EQ(eventfd_count("flags:\t02\neventfd-count: fffffffffffffffe\n"), 0xfffffffffffffffe);
  EXPECT_EQ(eventfd_count("pos:\t0\nflags:\t02\n"), 0u);
  EXPECT_EQ(eventfd_count("flags:\t02\neventfd-count:   "), 0u);
}

}  // namespace
}  // namespace bsp::init
