// An image that builds on another comes back as it was, or not at all.
#include "sidecar/storage/delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace bsp::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

const std::string kBaseKey(kKeyBytes, 'b');

ImageName name_of(std::uint64_t set, std::uint32_t rank = 1) {
  return {.job_uid = "0a1b-2c3d", .set = set, .epoch = set, .attempt = 1, .rank = rank, .ranks = 4};
}

Bytes random_bytes(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  bytes[0] = std::byte{1};  // as a stream of frames begins
  return bytes;
}

std::vector<Block> blocks_of(const Bytes& image, std::size_t block = kPage) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at + block <= image.size(); at += block)
    blocks.push_back({at, digest_of(std::span(image).subspan(at, block))});
  return blocks;
}

struct Stored {
  Bytes file;
  Base base;
};
std::unique_ptr<Stored> stored(const Bytes& image, std::size_t block = kPage) {
  auto s = std::make_unique<Stored>();
  auto sealer =
      Sealer::begin(kBaseKey, name_of(1), image.size(), [&](std::span<const std::byte> bytes) -> Result<void> {
        s->file.insert(s->file.end(), bytes.begin(), bytes.end());
        return {};
      });
  EXPECT_TRUE(sealer->add(image));
  s->base.name = name_of(1);
  s->base.key = kBaseKey;
  s->base.digest = sealer->finish()->digest;
  s->base.block = block;
  s->base.blocks = blocks_of(image, block);
  order_blocks(s->base.blocks);
  return s;
}

class InMemory final : public StoredImage {
 public:
  InMemory(const Bytes& bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}
  Result<std::size_t> read(std::span<std::byte> into) override {
    const std::size_t n = std::min({into.size(), piece_, bytes_.size() - at_});
    if (n > 0) std::memcpy(into.data(), bytes_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  Bytes bytes_;
  std::size_t piece_, at_ = 0;
};

Bytes delta_of(const Base& base, const Bytes& image) {
  const DeltaWriter writer(base, copies_from(base, blocks_of(image, base.block)), image.size());
  Bytes delta;
  EXPECT_TRUE(writer.write(
      [&](std::uint64_t at, std::span<std::byte> into) -> Result<void> {
        std::memcpy(into.data(), image.data() + at, into.size());
        return {};
      },
      [&](std::span<const std::byte> bytes) -> Result<void> {
        EXPECT_LE(bytes.size(), kChunk + 100);
        delta.insert(delta.end(), bytes.begin(), bytes.end());
        return {};
      }));
  EXPECT_EQ(writer.size(), delta.size());
  return delta;
}

struct Unpacked {
  Result<void> result;
  Bytes image;
};
Unpacked unpack(const Bytes& content, const Bytes& base_file, std::size_t piece = 99'991,
                const ImageName& name = name_of(2)) {
  Unpacked unpacked;
  Unpacker unpacker(
      name,
      [&](const ImageName&) -> Result<std::unique_ptr<StoredImage>> {
        if (base_file.empty()) return fail(ErrorCode::kNotFound, "there is none");
        return std::make_unique<InMemory>(base_file, piece);
      },
      [&](std::span<const std::byte> bytes) -> Result<void> {
        unpacked.image.insert(unpacked.image.end(), bytes.begin(), bytes.end());
        return {};
      });
  for (std::size_t at = 0; at < content.size() && unpacked.result; at += piece)
    unpacked.result = unpacker.feed(std::span(content).subspan(at, std::min(piece, content.size() - at)));
  if (unpacked.result) unpacked.result = unpacker.finish();
  return unpacked;
}

// A base, an image with a tenth changed, and the delta.
struct Changed {
  Bytes before = random_bytes(2'000'123), after = before;
  std::unique_ptr<Stored> base = stored(before);
  Bytes delta;
  Changed() {
    const Bytes fresh = random_bytes(200'000, 7);
    std::ranges::copy(fresh, after.begin() + 700'000);
    delta = delta_of(base->base, after);
  }
};

TEST(Delta, OfAChangedTenthIsATenth) {
  const Changed c;
  EXPECT_LT(c.delta.size(), c.after.size() / 8);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, kChunk, 4 * kChunk}) {
    const Unpacked unpacked = unpack(c.delta, c.base->file, piece);
    EXPECT_TRUE(unpacked.result) << unpacked.result.error().message;
    EXPECT_TRUE(unpacked.image == c.after) << piece;
  }
}

TEST(Delta, FindsWhatHasShiftedGrownOrGone) {
  const Bytes before = random_bytes(100 * kPage);
  const auto base = stored(before);
  Bytes grown = before;
  const Bytes fresh = random_bytes(10 * kPage, 9);
  grown.insert(grown.begin() + 30 * kPage, fresh.begin(), fresh.end());
  Bytes gone = before;
  gone.erase(gone.begin() + 20 * kPage, gone.begin() + 50 * kPage);
  // What was first is last: places only ascend, so half of it is copied.
  Bytes turned(before.begin() + 50 * kPage, before.end());
  turned.insert(turned.end(), before.begin(), before.begin() + 50 * kPage);
  for (const auto& [image, most] : {std::pair{grown, 11}, std::pair{gone, 1}, std::pair{turned, 51}}) {
    const Bytes delta = delta_of(base->base, image);
    EXPECT_LE(delta.size(), most * kPage);
    EXPECT_TRUE(unpack(delta, base->file).image == image);
  }
}

TEST(Delta, OfBlocksThatAreAllTheSame) {
  Bytes before(200 * kPage, std::byte{1});
  const auto base = stored(before);
  Bytes after = before;
  std::ranges::copy(random_bytes(3 * kPage, 5), after.begin() + 100 * kPage);
  after.resize(210 * kPage, std::byte{1});
  const Bytes delta = delta_of(base->base, after);
  EXPECT_LE(delta.size(), 15 * kPage) << "the base has three fewer than it needs, and ten";
  EXPECT_TRUE(unpack(delta, base->file).image == after);
}

// Pages that the base has often, next to some that it has once, must not lead away from these.
TEST(Delta, OfRandomMixturesIsRight) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto image = [&] {
      Bytes bytes;
      for (std::size_t i = 0, n = 20 + random() % 60; i < n; ++i) {
        const Bytes page = random_bytes(kPage, random() % 30);
        bytes.insert(bytes.end(), page.begin(), page.end());
      }
      bytes.resize(bytes.size() - random() % kPage);
      return bytes;
    };
    const Bytes before = image(), after = image();
    const auto base = stored(before);
    EXPECT_TRUE(unpack(delta_of(base->base, after), base->file, 1 + random() % 100'000).image == after) << seed;
  }
}

TEST(Delta, WhatIsWholeIsPassedOn) {
  const Bytes image = random_bytes(1000);
  const Unpacked unpacked = unpack(image, {}, 7);
  EXPECT_TRUE(unpacked.result);
  EXPECT_EQ(unpacked.image, image);
}

// Nothing that isn't all of the image gets to its end: a receiver then restores nothing.
void expect_refused(const Unpacked& unpacked, const Bytes& image, const std::string& what) {
  ASSERT_FALSE(unpacked.result) << what;
  EXPECT_TRUE(unpacked.result.error().code == ErrorCode::kRefused ||
              unpacked.result.error().code == ErrorCode::kNotFound)
      << what << ": " << unpacked.result.error().message;
  EXPECT_LT(unpacked.image.size(), image.size()) << what;
}

TEST(Delta, WhoseBaseIsDamagedIsRefused) {
  const Changed c;
  Bytes flipped = c.base->file;
  for (const std::size_t at : {std::size_t{3}, std::size_t{100}, flipped.size() / 2, flipped.size() - 1}) {
    flipped[at] ^= std::byte{1};
    expect_refused(unpack(c.delta, flipped), c.after, std::format("byte {}", at));
    flipped[at] ^= std::byte{1};
  }
  // In what was replaced, which the image doesn't need: it isn't the file that was stored all the same.
  flipped[800'000] ^= std::byte{1};
  expect_refused(unpack(c.delta, flipped), c.after, "unneeded");
  for (const std::size_t size : {c.base->file.size() - 1, c.base->file.size() / 2, std::size_t{10}})
    expect_refused(
        unpack(c.delta, Bytes(c.base->file.begin(), c.base->file.begin() + static_cast<std::ptrdiff_t>(size))), c.after,
        std::format("truncated to {}", size));
  Bytes longer = c.base->file;
  longer.push_back(std::byte{0});
  expect_refused(unpack(c.delta, longer), c.after, "longer");
  expect_refused(unpack(c.delta, {}), c.after, "gone");
  EXPECT_THAT(unpack(c.delta, {}).result.error().message, HasSubstr("the image of set 1, which it builds on"));
}

// Another image under the base's name and key: the same rank's in a sealing of its own, as a tenant could not make, and an older one.
TEST(Delta, WhoseBaseWasExchangedIsRefused) {
  const Changed c;
  expect_refused(unpack(c.delta, stored(c.before)->file), c.after, "sealed again");
  expect_refused(unpack(c.delta, stored(c.after)->file), c.after, "another");
}

TEST(Delta, ThatIsTruncatedIsRefused) {
  const Changed c;
  for (std::size_t size = 1; size < c.delta.size(); size += size < 600 ? 1 : 20'011)
    expect_refused(unpack(Bytes(c.delta.begin(), c.delta.begin() + static_cast<std::ptrdiff_t>(size)), c.base->file),
                   c.after, std::format("{}", size));
}

TEST(Delta, OfAnotherRankOrAttemptIsRefused) {
  const Changed c;
  ImageName attempt = name_of(2);
  attempt.attempt = 2;
  for (const ImageName& name : {name_of(2, 2), attempt, name_of(1)})
    expect_refused(unpack(c.delta, c.base->file, 1000, name), c.after, name.job_uid);
}

// Nobody but a sidecar can have written these, which is no reason to crash.
TEST(Delta, ThatIsNonsenseIsRefused) {
  const Changed c;
  const auto length = std::to_integer<std::size_t>(c.delta[10]) << 8 | std::to_integer<std::size_t>(c.delta[11]);
  const auto with = [&](std::initializer_list<int> record) {
    Bytes bytes(c.delta.begin(), c.delta.begin() + static_cast<std::ptrdiff_t>(12 + length));
    for (const int b : record) bytes.push_back(static_cast<std::byte>(b));
    return bytes;
  };
  const std::vector<Bytes> all = {
      with({2}),
      with({0, 0, 0, 0, 0}),
      with({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
      with({1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255}),
      with({1, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 16, 0}),
      with({1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0}),  // back
      with({0, 255, 255, 255, 255, 1}),
      with({}),
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    expect_refused(unpack(all[i], c.base->file), c.after, std::format("{}", i));
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    Bytes bytes = c.delta;
    // Without the first byte it would count as whole, and the receiver would refuse it.
    bytes[1 + random() % (11 + length)] = static_cast<std::byte>(random());
    const Unpacked unpacked = unpack(bytes, c.base->file);
    EXPECT_TRUE(!unpacked.result || unpacked.image == c.after);
  }
}

TEST(Delta, BlocksGrowWithTheImage) {
  EXPECT_EQ(block_bytes(1), kPage);
  EXPECT_EQ(block_bytes(1 << 30), kPage);
  EXPECT_EQ(block_bytes(3ULL << 30), 4 * kPage);
  EXPECT_LE((1ULL << 50) / block_bytes(1ULL << 50), kMostBlocks);
  EXPECT_LE(kMostBlocks * sizeof(Block), 7U << 20);
}

}  // namespace
}  // namespace bsp::storage
