// What was stored is read again, and anything else is refused before its last byte is passed on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/net/sha256.h"
#include "crds/wire.h"
#include "sidecar/storage/directory.h"
#include "sidecar/storage/image.h"

namespace bsp::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

const std::string kKey(kKeyBytes, 'k');

ImageName name_of(std::uint32_t rank, std::uint64_t set = 3) {
  return {.job_uid = "0a1b-2c3d", .set = set, .epoch = 5, .attempt = 1, .rank = rank, .ranks = 4};
}

Bytes random_bytes(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

struct File {
  Bytes bytes;
  Sealed sealed;
};

File seal(const Bytes& plain, const ImageName& name = name_of(1), std::string_view key = kKey,
          std::size_t piece = 70'001) {
  File file;
  auto sealer = Sealer::begin(key, name, plain.size(), [&](std::span<const std::byte> bytes) -> Result<void> {
    file.bytes.insert(file.bytes.end(), bytes.begin(), bytes.end());
    return {};
  });
  EXPECT_TRUE(sealer) << sealer.error().message;
  for (std::size_t at = 0; at < plain.size(); at += piece)
    EXPECT_TRUE(sealer->add(std::span(plain).subspan(at, std::min(piece, plain.size() - at))));
  auto sealed = sealer->finish();
  EXPECT_TRUE(sealed);
  if (sealed) file.sealed = *sealed;
  return file;
}

struct Opened {
  Result<void> result;
  Bytes plain;
};

Opened open(const Bytes& file, const std::string& digest, const ImageName& name = name_of(1),
            std::string_view key = kKey, std::size_t piece = 99'991) {
  Opened opened;
  Opener opener(key, name, digest, [&](std::span<const std::byte> bytes) -> Result<void> {
    opened.plain.insert(opened.plain.end(), bytes.begin(), bytes.end());
    return {};
  });
  for (std::size_t at = 0; at < file.size() && opened.result; at += piece)
    opened.result = opener.feed(std::span(file).subspan(at, std::min(piece, file.size() - at)));
  if (opened.result) opened.result = opener.finish();
  return opened;
}

// With the digest of the changed file, as if the status had been changed along: the cipher alone must refuse it.
std::string digest_of(const Bytes& file) {
  return net::sha256({reinterpret_cast<const char*>(file.data()), file.size()});
}

TEST(Image, IsReadAsItWasWritten) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{17}, kChunk - 1, kChunk, kChunk + 1, 2 * kChunk, 5 * kChunk + 12'345})
    for (const std::size_t piece : {std::size_t{1000}, kChunk, 3 * kChunk}) {
      const Bytes plain = random_bytes(size);
      const File file = seal(plain, name_of(1), kKey, piece);
      EXPECT_EQ(file.sealed.bytes, file.bytes.size());
      EXPECT_EQ(file.sealed.digest, digest_of(file.bytes));
      const Opened opened = open(file.bytes, file.sealed.digest, name_of(1), kKey, piece);
      EXPECT_TRUE(opened.result) << size << ": " << opened.result.error().message;
      EXPECT_EQ(opened.plain, plain);
    }
}

TEST(Image, IsReadByteByByte) {
  const Bytes plain = random_bytes(2000);
  const File file = seal(plain);
  EXPECT_EQ(open(file.bytes, file.sealed.digest, name_of(1), kKey, 1).plain, plain);
}

TEST(Image, ShowsNothingOfItsContent) {
  Bytes plain(3 * kChunk, std::byte{'A'});
  const File file = seal(plain), again = seal(plain);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  EXPECT_EQ(text.find("AAAA"), std::string_view::npos);
  // Nor whether two are the same.
  EXPECT_TRUE(std::ranges::search(file.bytes, std::span(again.bytes).last(1000)).empty());
}

TEST(Image, OfAnotherRankSetAttemptOrJobIsRefused) {
  const Bytes plain = random_bytes(1000);
  const File file = seal(plain);
  std::vector<ImageName> others(6, name_of(1));
  others[0].rank = 2;
  others[1].set = 4;
  others[2].attempt = 2;
  others[3].job_uid = "another";
  others[4].epoch = 6;
  others[5].ranks = 5;
  for (const ImageName& other : others) {
    const Opened opened = open(file.bytes, file.sealed.digest, other);
    ASSERT_FALSE(opened.result);
    EXPECT_EQ(opened.result.error().code, ErrorCode::kRefused);
    EXPECT_THAT(opened.result.error().message, HasSubstr("is that of rank 1 of 4 in set 3"));
    EXPECT_TRUE(opened.plain.empty());
  }
}

TEST(Image, UnderAnotherKeyIsRefused) {
  const File file = seal(random_bytes(1000));
  const Opened opened = open(file.bytes, file.sealed.digest, name_of(1), std::string(kKeyBytes, 'x'));
  ASSERT_FALSE(opened.result);
  EXPECT_EQ(opened.result.error().code, ErrorCode::kRefused);
  EXPECT_TRUE(opened.plain.empty());
  EXPECT_FALSE(Sealer::begin("short", name_of(1), 10, [](auto) -> Result<void> { return {}; }));
}

// Two files of the same name, each whole: only the one that the status names.
TEST(Image, ThatIsNotTheNamedOneIsRefused) {
  const File named = seal(random_bytes(kChunk + 1)), older = seal(random_bytes(kChunk + 1, 2));
  const Opened opened = open(older.bytes, named.sealed.digest);
  ASSERT_FALSE(opened.result);
  EXPECT_THAT(opened.result.error().message, HasSubstr("not the file that was stored"));
  EXPECT_LT(opened.plain.size(), kChunk + 1) << "the last chunk is kept back";
}

TEST(Image, IsRefusedWhereverItIsTruncated) {
  const File file = seal(random_bytes(2 * kChunk + 500));
  std::vector<std::size_t> sizes{0,
                                 1,
                                 7,
                                 8,
                                 11,
                                 12,
                                 13,
                                 200,
                                 file.bytes.size() - 1,
                                 file.bytes.size() - 500,
                                 file.bytes.size() - 500 - kTag,
                                 file.bytes.size() - 500 - 2 * kTag - kChunk};
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) sizes.push_back(random() % file.bytes.size());
  for (const std::size_t size : sizes) {
    const Bytes cut(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const Opened opened = open(cut, digest_of(cut));
    ASSERT_FALSE(opened.result) << size;
    EXPECT_EQ(opened.result.error().code, ErrorCode::kRefused);
    EXPECT_LT(opened.plain.size(), 2 * kChunk + 500);
  }
}

TEST(Image, IsRefusedWhereverABitIsFlipped) {
  const File file = seal(random_bytes(kChunk + 500));
  std::mt19937 random(8);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < 400; ++i) places.push_back(i);  // magic, length, header, first bytes
  for (int i = 0; i < 60; ++i) places.push_back(random() % file.bytes.size());
  for (const std::size_t at : places) {
    Bytes flipped = file.bytes;
    flipped[at] ^= static_cast<std::byte>(1 << random() % 8);
    for (const std::string& digest : {file.sealed.digest, at % 16 == 0 ? digest_of(flipped) : file.sealed.digest}) {
      const Opened opened = open(flipped, digest);
      ASSERT_FALSE(opened.result) << at;
      EXPECT_LT(opened.plain.size(), kChunk + 500);
    }
  }
}

TEST(Image, IsRefusedWithItsChunksExchangedRepeatedOrMissing) {
  const File file = seal(random_bytes(4 * kChunk));
  const std::size_t head = file.bytes.size() - 4 * (kChunk + kTag);
  auto chunk = [&](std::size_t i) { return std::span(file.bytes).subspan(head + i * (kChunk + kTag), kChunk + kTag); };
  for (const std::vector<std::size_t>& order : std::vector<std::vector<std::size_t>>{
           {1, 0, 2, 3}, {0, 2, 1, 3}, {0, 0, 1, 2, 3}, {0, 2, 3}, {0, 1, 2}, {0, 1, 3}, {0, 1, 2, 3, 3}}) {
    Bytes changed(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(head));
    for (const std::size_t i : order) changed.insert(changed.end(), chunk(i).begin(), chunk(i).end());
    const Opened opened = open(changed, digest_of(changed));
    EXPECT_FALSE(opened.result);
    EXPECT_LT(opened.plain.size(), 4 * kChunk);
  }
}

TEST(Image, MustHaveTheAnnouncedSize) {
  const auto nothing = [](std::span<const std::byte>) -> Result<void> { return {}; };
  const Bytes plain = random_bytes(100);
  auto more = Sealer::begin(kKey, name_of(0), 99, nothing);
  EXPECT_FALSE(more->add(plain));
  auto less = Sealer::begin(kKey, name_of(0), 101, nothing);
  EXPECT_TRUE(less->add(plain));
  EXPECT_FALSE(less->finish());
  EXPECT_FALSE(Sealer::begin(kKey, name_of(0), 0, nothing));
}

// --- In a directory ------------------------------------------------------------------------------------
class InDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/bsp-storage-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<void> store(const ImageName& name, const std::string& text) {
    auto image = Directory(root_).create(name);
    if (!image) return std::unexpected(image.error());
    BSP_CHECK_OK((*image)->write(std::as_bytes(std::span(text))));
    return (*image)->publish();
  }
  Result<std::string> read(const ImageName& name) {
    auto file = Directory(root_).open(name);
    if (!file) return std::unexpected(file.error());
    std::string text(100, '\0');
    BSP_TRY(const std::size_t n, (*file)->read(std::as_writable_bytes(std::span(text))));
    text.resize(n);
    return text;
  }
  [[nodiscard]] std::string path(const ImageName& name) const {
    return std::format("{}/{}/set-{}/rank-{}", root_, name.job_uid, name.set, name.rank);
  }

  std::string root_;
};

TEST_F(InDirectory, AnImageIsThereOnceItIsPublished) {
  {
    auto image = Directory(root_).create(name_of(1));
    ASSERT_TRUE(image);
    EXPECT_TRUE((*image)->write(std::as_bytes(std::span("half", 4))));
    EXPECT_EQ(Directory(root_).open(name_of(1)).error().code, ErrorCode::kNotFound);
  }
  EXPECT_TRUE(fs::is_empty(fs::path(path(name_of(1))).parent_path())) << "what was given up is gone";
  EXPECT_TRUE(store(name_of(1), "whole"));
  EXPECT_EQ(*read(name_of(1)), "whole");
  struct stat status{};
  ASSERT_EQ(::stat(path(name_of(1)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(InDirectory, NoNameIsGivenTwice) {
  EXPECT_TRUE(store(name_of(1), "first"));
  const auto second = store(name_of(1), "second");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(*read(name_of(1)), "first");
}

TEST_F(InDirectory, LinksAndPipesAreNotOpened) {
  EXPECT_TRUE(store(name_of(1), "a"));
  fs::create_symlink(path(name_of(1)), path(name_of(2)));
  EXPECT_EQ(Directory(root_).open(name_of(2)).error().code, ErrorCode::kRefused);
  ASSERT_EQ(::mkfifo(path(name_of(3)).c_str(), 0600), 0);
  EXPECT_EQ(Directory(root_).open(name_of(3)).error().code, ErrorCode::kRefused);
  fs::create_directory_symlink(fs::path(path(name_of(1))).parent_path(), root_ + "/0a1b-2c3d/set-9");
  EXPECT_FALSE(Directory(root_).open(name_of(1, 9)));
  ImageName out = name_of(1);
  out.job_uid = "../elsewhere";
  EXPECT_EQ(Directory(root_).create(out).error().code, ErrorCode::kInvalid);
}

// So that no job gives up a set for it (sidecar/agent/stored_images.h, is_damage).
TEST_F(InDirectory, WhatCannotBeReachedIsNotDamage) {
  EXPECT_TRUE(store(name_of(1), "a"));
  const auto is_of_storage = [](const auto& result) {
    const ErrorCode code = result ? ErrorCode::kNotFound : result.error().code;
    return code != ErrorCode::kNotFound && code != ErrorCode::kRefused && code != ErrorCode::kInvalid;
  };
  EXPECT_TRUE(is_of_storage(Directory(root_ + "/not-mounted").open(name_of(1)))) << "no such directory";
  const uid_t user = ::geteuid();
  const auto become = [&](uid_t other) { return user != 0 || ::seteuid(other) == 0; };  // root may read everything
  const fs::path file = path(name_of(1)), of_set = file.parent_path(), of_job = of_set.parent_path();
  for (const fs::path& closed : {fs::path(root_), of_job, of_set, file}) {
    for (const fs::path& directory : {fs::path(root_), of_job, of_set}) fs::permissions(directory, fs::perms(0755));
    fs::permissions(closed, fs::perms::none);
    ASSERT_TRUE(become(65534));
    const auto opened = Directory(root_).open(name_of(1));
    ASSERT_TRUE(become(0));
    EXPECT_TRUE(is_of_storage(opened)) << closed;
  }
  fs::permissions(root_, fs::perms(0700));
}

TEST_F(InDirectory, SetsGoButThoseThatAreKeptOrNewer) {
  // Of the third group's sets none builds on those of the first two.
  for (const std::uint64_t set : {1, 2, 3, 9, 17, 18}) EXPECT_TRUE(store(name_of(0, set), "x"));
  fs::create_directories(root_ + "/0a1b-2c3d/set-01");  // nobody's
  fs::create_directories(root_ + "/0a1b-2c3d/set-2-my-copy");
  fs::create_directories(root_ + "/another/set-1");
  EXPECT_THAT(*Directory(root_).remove_sets("0a1b-2c3d", 17, {9}), ElementsAre(1, 2, 3));
  for (const std::uint64_t set : {9, 17, 18}) EXPECT_TRUE(read(name_of(0, set))) << set;
  for (const char* other : {"/0a1b-2c3d/set-01", "/0a1b-2c3d/set-2-my-copy", "/another/set-1"})
    EXPECT_TRUE(fs::exists(root_ + other)) << other;
  EXPECT_THAT(*Directory(root_).remove_sets("0a1b-2c3d", 17, {9}), ElementsAre());
  EXPECT_TRUE(Directory(root_).remove_sets("unknown", 17, {}));
  EXPECT_THAT(*Directory(root_).remove_sets("0a1b-2c3d", UINT64_MAX, {}), ElementsAre(9, 17, 18));
}

TEST_F(InDirectory, WhatOthersBuildOnStays) {
  const Directory directory(root_);
  for (const std::uint64_t set : {1, 2, 3, 4})
    for (const std::uint32_t rank : {0, 1}) EXPECT_TRUE(store(name_of(rank, set), "x"));
  // Set 2 is no base, so it goes. Set 1 stays for sets 3 and 4, which are kept.
  EXPECT_THAT(*directory.remove_sets("0a1b-2c3d", 4, {3, 4}), ElementsAre(2));
  // Rank 0 is whole from set 4 on, and set 3 still builds on set 1.
  EXPECT_TRUE(directory.mark_whole(name_of(0, 4)));
  EXPECT_THAT(*directory.remove_sets("0a1b-2c3d", 4, {3, 4}), ElementsAre());
  EXPECT_TRUE(read(name_of(0, 1)));
  EXPECT_TRUE(store(name_of(0, 5), "x") && store(name_of(1, 5), "x") && directory.mark_whole(name_of(0, 5)));
  EXPECT_THAT(*directory.remove_sets("0a1b-2c3d", 5, {4, 5}), ElementsAre(3));
  EXPECT_FALSE(read(name_of(0, 1))) << "nobody builds on it any more";
  EXPECT_TRUE(read(name_of(1, 1)));
  // The newest set alone holds it too: the next one, of which nothing is there yet, may build on it.
  EXPECT_THAT(*directory.remove_sets("0a1b-2c3d", 6, {5}), ElementsAre(4));
  EXPECT_TRUE(read(name_of(1, 1)));
  // A mark that is listed late keeps it; once all of the group are gone, it goes.
  EXPECT_THAT(*directory.remove_sets("0a1b-2c3d", 9, {9}), ElementsAre(1, 5));
}

TEST(Groups, BeginWithSetOne) {
  EXPECT_EQ(wire::base_of(0), 0U);
  for (const std::uint64_t set : {1, 2, 8}) EXPECT_EQ(wire::base_of(set), 1U);
  for (const std::uint64_t set : {9, 16}) EXPECT_EQ(wire::base_of(set), 9U);
  EXPECT_LE(wire::base_of(UINT64_MAX), UINT64_MAX);
}

TEST_F(InDirectory, AJobGoesWithAllThatItStoredAndNothingElse) {
  for (const std::uint64_t set : {1, 2}) EXPECT_TRUE(store(name_of(0, set), "x"));
  std::ofstream(root_ + "/0a1b-2c3d/set-1/.rank-0.cut-off") << "x";
  fs::create_directories(root_ + "/0a1b-2c3d/of-another-version/below");
  fs::create_directories(root_ + "/0a1b-2c3d-2/set-1");  // whose uid begins with it
  fs::create_directories(root_ + "/another/set-1");
  fs::create_directory_symlink(root_ + "/another", root_ + "/0a1b-2c3d/link");
  const Directory directory(root_);
  EXPECT_TRUE(directory.remove_job("0a1b-2c3d"));
  EXPECT_FALSE(fs::exists(root_ + "/0a1b-2c3d"));
  for (const char* other : {"/0a1b-2c3d-2/set-1", "/another/set-1"}) EXPECT_TRUE(fs::exists(root_ + other)) << other;
  EXPECT_TRUE(directory.remove_job("0a1b-2c3d")) << "again";
  // A link in its place is removed, and not what it leads to.
  fs::create_directory_symlink(root_ + "/another", root_ + "/0a1b-2c3d");
  EXPECT_TRUE(directory.remove_job("0a1b-2c3d"));
  EXPECT_TRUE(fs::exists(root_ + "/another/set-1"));
  for (const char* out : {"", ".", "..", "../another", "a/b"})
    EXPECT_EQ(directory.remove_job(out).error().code, ErrorCode::kInvalid) << out;
}

TEST_F(InDirectory, AJobThatCanNotBeRemovedIsNamed) {
  const auto removed = Directory("/proc/self").remove_job("fdinfo");  // that root can't remove either
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message, HasSubstr("/proc/self/fdinfo"));
  EXPECT_NE(removed.error().code, ErrorCode::kInvalid);
}

TEST_F(InDirectory, AMissingRootIsNamed) {
  const auto image = Directory(root_ + "/none").create(name_of(0));
  ASSERT_FALSE(image);
  EXPECT_THAT(image.error().message, HasSubstr(root_ + "/none"));
}

}  // namespace
}  // namespace bsp::storage
