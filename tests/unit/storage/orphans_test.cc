// What jobs have left that are gone: it is found by its owner's mark and by its age, in a directory and in a bucket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "sidecar/storage/bucket.h"
#include "sidecar/storage/directory.h"
#include "tests/unit/storage/bucket_server.h"

namespace bsp::storage {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class Orphaned : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) {
      char name[] = "/tmp/bsp-orphans-XXXXXX";
      root_ = ::mkdtemp(name);
      storage_ = std::make_unique<Directory>(root_);
      return;
    }
    if (!BucketServer::can_run())
      GTEST_SKIP() << "needs rclone (images/client.packages) and versitygw (tests/cluster/build.sh versitygw)";
    server_ = std::make_unique<BucketServer>();
    root_ = server_->files() / "team";
    storage_ = std::make_unique<Bucket>(server_->location(server_->port()));
  }
  void TearDown() override {
    if (!server_) fs::remove_all(root_);
  }

  void store(const std::string& uid, std::uint64_t set = 1) {
    const auto image =
        storage_->create({.job_uid = uid, .set = set, .epoch = 1, .attempt = 0, .rank = 0, .ranks = 1}, 4, nullptr);
    ASSERT_TRUE(image) << image.error().message;
    ASSERT_TRUE((*image)->write(std::as_bytes(std::span("text", 4))));
    ASSERT_TRUE((*image)->publish());
  }
  void mark(const std::string& uid, const std::string& owner = "us") {
    const auto marked = storage_->mark_job(uid, owner, nullptr);
    ASSERT_TRUE(marked) << marked.error().message;
  }
  // All that there is of it, and its directories.
  void age(const std::string& uid, std::chrono::seconds by = 24h) const {
    const auto earlier = [&](const fs::path& path) { fs::last_write_time(path, fs::last_write_time(path) - by); };
    for (const auto& entry : fs::recursive_directory_iterator(root_ / uid)) earlier(entry.path());
    earlier(root_ / uid);
  }
  void leave(const std::string& uid, const std::string& owner = "us") {
    store(uid);
    mark(uid, owner);
    age(uid);
  }
  [[nodiscard]] bool has(const std::string& uid) const { return fs::exists(root_ / uid / "set-1" / "rank-0"); }
  [[nodiscard]] Result<std::vector<std::string>> remove(std::vector<std::string> jobs = {}) const {
    return storage_->remove_orphans("ours", {.owner = "us", .jobs = std::move(jobs), .age = 12h}, nullptr);
  }

  std::unique_ptr<BucketServer> server_;
  std::unique_ptr<Storage> storage_;
  fs::path root_;
};
INSTANTIATE_TEST_SUITE_P(In, Orphaned, ::testing::Values(false, true),
                         [](const auto& place) { return std::string(place.param ? "Bucket" : "Directory"); });

TEST_P(Orphaned, OfTheSameOwnerGoAndNothingElse) {
  store("ours");
  mark("ours");
  leave("gone-1");
  leave("gone-2");
  leave("known");
  leave("others", "them");
  leave("prefix", "us-too");
  store("retained");
  age("retained");
  leave("writes");
  store("writes", 2);  // a moment ago
  const auto removed = remove({"known"});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(*removed, UnorderedElementsAre("gone-1", "gone-2"));
  EXPECT_FALSE(fs::exists(root_ / "gone-1" / "of-us"));
  for (const char* stays : {"ours", "known", "others", "prefix", "retained", "writes"})
    EXPECT_TRUE(has(stays)) << stays;
  EXPECT_THAT(remove({"known"}).value(), IsEmpty());
}

TEST_P(Orphaned, AreThoseOfNobodyWithoutTheOwnMark) {
  leave("gone");
  store("ours");
  EXPECT_FALSE(remove()) << "nothing says what time it is there";
  EXPECT_TRUE(has("gone"));
}

// Of a job that ran for long its own clock counts, and not that of the machine.
TEST_P(Orphaned, AreAsOldAsTheStorageSays) {
  store("ours");
  mark("ours");
  leave("gone");
  age("ours", 20h);
  EXPECT_THAT(remove().value(), IsEmpty()) << "for the storage it is four hours old";
  mark("ours");
  EXPECT_THAT(remove().value(), ElementsAre("gone")) << "a mark is put again with the present time";
}

TEST_P(Orphaned, AreOnlyWhatIsMarked) {
  store("ours");
  mark("ours");
  leave("retained");
  ASSERT_TRUE(storage_->mark_job("retained", "", nullptr));
  ASSERT_TRUE(storage_->mark_job("retained", "", nullptr)) << "again";
  ASSERT_TRUE(storage_->mark_job("never-stored", "", nullptr));
  age("retained");
  EXPECT_THAT(remove().value(), IsEmpty());
  EXPECT_TRUE(has("retained"));
  EXPECT_FALSE(fs::exists(root_ / "retained" / "of-us"));
}

TEST_P(Orphaned, GoAFewAtATime) {
  store("ours");
  mark("ours");
  for (std::size_t i = 0; i < kMostOrphans + 2; ++i) leave(std::format("gone-{}", i));
  EXPECT_THAT(remove().value(), SizeIs(kMostOrphans));
  EXPECT_THAT(remove().value(), SizeIs(2));
}

TEST_P(Orphaned, OfAnImpossibleNameAreNotMarked) {
  for (const auto& [uid, owner] : {std::pair("../x", "us"), std::pair("ours", "../us"), std::pair("ours", "a/b")})
    EXPECT_EQ(storage_->mark_job(uid, owner, nullptr).error().code, ErrorCode::kInvalid) << uid;
}

TEST(OrphansOfADirectory, AreReachedByNoLink) {
  char name[] = "/tmp/bsp-orphans-XXXXXX";
  const fs::path root = fs::path(::mkdtemp(name)) / "root", elsewhere = root.parent_path() / "elsewhere";
  for (const fs::path& at : {root / "ours", elsewhere / "set-1"}) fs::create_directories(at);
  std::ofstream(elsewhere / "of-us") << "\n";
  fs::create_directory_symlink(elsewhere, root / "link");
  const Directory directory(root);
  ASSERT_TRUE(directory.mark_job("ours", "us"));
  EXPECT_THAT(directory.remove_orphans("ours", {.owner = "us", .jobs = {}, .age = 0s}).value(), IsEmpty());
  EXPECT_TRUE(fs::exists(root / "link"));
  // Inside an orphan one goes, and what it names stays.
  fs::create_directory(root / "gone");
  ASSERT_TRUE(directory.mark_job("gone", "us"));
  fs::create_directory_symlink(elsewhere, root / "gone" / "link");
  EXPECT_THAT(directory.remove_orphans("ours", {.owner = "us", .jobs = {}, .age = 0s}).value(), ElementsAre("gone"));
  EXPECT_TRUE(fs::exists(elsewhere / "set-1"));
  fs::remove_all(root.parent_path());
}

TEST(OrphansOfADirectory, ThatCanNotBeListedAreNamed) {
  const Directory away("/nonexistent/sets");
  EXPECT_FALSE(away.mark_job("ours", "us"));
  EXPECT_FALSE(away.remove_orphans("ours", {.owner = "us", .jobs = {}, .age = 0s}));
}

}  // namespace
}  // namespace bsp::storage
