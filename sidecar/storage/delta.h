// An image that leaves out what an earlier image of the same rank, its base, holds: a program that changes a tenth of its
// memory stores a tenth. What is sealed in the file (image.h) then isn't the image, but
//
//   delta  = "bspdelt1", u32 length, DeltaHeader as JSON, record…        integers are big-endian
//   record = u8 0, u32 n, n bytes                                       the image's next n bytes
//          | u8 1, u64 at, u32 n                                        they are those of the base at `at`
//
// Only an image that is whole can be a base, so no chain is longer than one. Records name places of the base in ascending order:
// both files are read once, from their beginnings, in a piece at a time.
//
// Trust: the delta is authenticated as every image is, and has in it the base's name, digest and key. So nobody can put another
// base in place of the one that the sidecar stored, and a base that is damaged or gone is found before the image is whole.
//
// Blocks are compared by SHA-256, cut to 16 bytes: whoever can make two blocks collide (2^64 tries) harms his own program only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"
#include "sidecar/storage/image.h"
#include "sidecar/storage/storage.h"

namespace bsp::storage {

inline constexpr std::size_t kPage = 4096;
// At most so many blocks has an image, which keeps what a sidecar knows of them below 7 MiB: a block is one page up to 1 GiB, two
// up to 2 GiB, and so on.
inline constexpr std::uint64_t kMostBlocks = 1 << 18;
constexpr std::size_t block_bytes(std::uint64_t image) {
  std::size_t bytes = kPage;
  while (image / bytes > kMostBlocks) bytes *= 2;
  return bytes;
}

using BlockDigest = std::array<std::byte, 16>;
BlockDigest digest_of(std::span<const std::byte> block);

struct Block {
  std::uint64_t at = 0;  // in the image
  BlockDigest digest = {};
};

// A whole image that later ones can leave out blocks of.
struct Base {
  Base() = default;
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  ~Base();

  ImageName name;
  std::string digest;  // of its file
  std::string key;     // its set's
  std::size_t block = kPage;
  std::vector<Block> blocks;  // by digest, then by place
};
// Sorts the blocks as Base has them.
void order_blocks(std::vector<Block>& blocks);

// `bytes` bytes of the image at `at` are those of the base at `from`.
struct Copy {
  std::uint64_t at = 0, from = 0, bytes = 0;
  bool operator==(const Copy&) const = default;
};
// What of an image, whose blocks come in the order of their places, can be copied from the base: ascending in both.
std::vector<Copy> copies_from(const Base& base, std::span<const Block> blocks);

struct DeltaHeader {
  ImageName base;
  std::string digest;       // of the base's file
  std::string key;          // of the base's set, in base64
  std::uint64_t bytes = 0;  // of the image
};
constexpr void fields_of(Of<DeltaHeader>, auto&& v) {
  v("base", &DeltaHeader::base, kRequired);
  v("digest", &DeltaHeader::digest, kRequired);
  v("key", &DeltaHeader::key, kRequired);
  v("bytes", &DeltaHeader::bytes, kRequired);
}
constexpr void written_whole(Of<DeltaHeader>) {}

// Writes the delta of an image of `bytes` bytes.
class DeltaWriter {
 public:
  DeltaWriter(const Base& base, std::vector<Copy> copies, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }  // of the delta
  // `read` fills a piece of the image from `at`; `sink` gets the delta in pieces of at most kChunk bytes.
  using Read = std::function<Result<void>(std::uint64_t at, std::span<std::byte> into)>;
  Result<void> write(const Read& read, const Sink& sink) const;

 private:
  std::string header_;
  std::vector<Copy> copies_;
  std::uint64_t bytes_, size_;
};

// An image that is stored whole, its bytes one after another.
class ImageReader {
 public:
  ImageReader(std::unique_ptr<StoredImage> file, std::string_view key, const ImageName& name,
              const std::string& digest);
  // Goes forward to `at`, and takes bytes from there. kRefused: the image is damaged, or ends before.
  Result<void> read(std::uint64_t at, std::span<std::byte> into);
  // Reads the rest: all of the file is the one that it should be.
  Result<void> finish();

 private:
  Result<bool> more();  // false: that was all

  std::unique_ptr<StoredImage> file_;
  std::vector<std::byte> buffer_, plain_;
  std::uint64_t at_ = 0;  // of plain_'s first byte
  bool ended_ = false;
  Opener opener_;
};

// Takes what is sealed in an image's file, and gives the image: as it is, or by way of its base.
class Unpacker {
 public:
  using OpenBase = std::function<Result<std::unique_ptr<StoredImage>>(const ImageName&)>;
  // `name`: the image's. An error of open_base and of the sink is returned as it is.
  Unpacker(ImageName name, OpenBase open_base, Sink sink);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // kRefused: it can't be what a sidecar has written, or the base is damaged. The image's last byte is only given once all of
  // the base is known to be the right one.
  Result<void> feed(std::span<const std::byte> bytes);
  // kRefused: something is missing.
  Result<void> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bsp::storage
