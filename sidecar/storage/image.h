// A rank's checkpoint as it lies in storage: encrypted and authenticated, so that whoever can read or write the storage
// learns nothing and can forge nothing.
//
//   file   = "bspset1\n", u32 length, header, chunk…        integers are big-endian
//   header = JSON of ImageHeader: which image it is, its plain length, and a salt
//   chunk  = AES-256-GCM of kChunk plain bytes (the last one has the rest, at least one byte), and its tag of 16 bytes
//
//   key    = HKDF-SHA256(the set's key, salt, "bspset1 image")     a key for each file: no nonce is used twice under it,
//                                                                  even if two files got the same name
//   nonce  = 7 zero bytes, u8 1 for the last chunk else 0, u32 number of the chunk from 0
//   AAD    = everything before the first chunk
//
// So a chunk can be neither changed, reordered, repeated nor left out, and none fits into another file. The SHA-256 of the
// whole file, which the job's status holds, says in addition that it is this very file. Nothing of a file is passed on before
// its chunk is authenticated, and the last chunk only once the digest of all of it agrees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fields.h"

namespace bsp::storage {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kChunk = 256 << 10;
inline constexpr std::size_t kTag = 16;
inline constexpr std::size_t kMostHeader = 4096;

// Which image it is.
struct ImageName {
  std::string job_uid;
  std::uint64_t set = 0;
  std::uint64_t epoch = 0;  // that the ranks had closed
  std::uint32_t attempt = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  bool operator==(const ImageName&) const = default;
};
constexpr void fields_of(Of<ImageName>, auto&& v) {
  v("job_uid", &ImageName::job_uid, kRequired);
  v("set", &ImageName::set, kRequired);
  v("epoch", &ImageName::epoch, kRequired);
  v("attempt", &ImageName::attempt, kRequired);
  v("rank", &ImageName::rank, kRequired);
  v("ranks", &ImageName::ranks, kRequired);
}

struct ImageHeader {
  ImageName name;
  std::uint64_t bytes = 0;  // plain
  std::string salt;         // 32 bytes in hexadecimal
  bool operator==(const ImageHeader&) const = default;
};
constexpr void fields_of(Of<ImageHeader>, auto&& v) {
  v("name", &ImageHeader::name, kRequired);
  v("bytes", &ImageHeader::bytes, kRequired);
  v("salt", &ImageHeader::salt, kRequired);
}
constexpr void written_whole(Of<ImageName>) {}
constexpr void written_whole(Of<ImageHeader>) {}

// A file once it is whole.
struct Sealed {
  std::uint64_t bytes = 0;
  std::string digest;  // SHA-256, lower-case hexadecimal
};

// At most so many bytes has the file of an image of so many plain bytes.
constexpr std::uint64_t file_bytes(std::uint64_t plain) {
  return plain + (plain / kChunk + 1) * kTag + kMostHeader + 12;
}

using Sink = std::function<Result<void>(std::span<const std::byte>)>;

// Writes the file of an image of `bytes` plain bytes, at least one.
class Sealer {
 public:
  // `key`: the set's, kKeyBytes.
  static Result<Sealer> begin(std::string_view key, const ImageName& name, std::uint64_t bytes, Sink sink);
  Sealer(Sealer&&) noexcept;
  Sealer& operator=(Sealer&&) = delete;
  ~Sealer();

  // The next plain bytes. An error of the sink is returned as it is.
  Result<void> add(std::span<const std::byte> plain);
  // kInvalid if more or less was added than announced.
  Result<Sealed> finish();

 private:
  struct Impl;
  explicit Sealer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads such a file: feed() takes it in pieces of any size, `sink` gets the plain bytes. kRefused: it is damaged, forged, or
// another image than the expected one; nothing that the sink has got so far may then be used. After an error every call fails.
class Opener {
 public:
  // `digest`: of the whole file, as Sealed has it.
  Opener(std::string_view key, ImageName expected, std::string digest, Sink sink);
  Opener(Opener&&) noexcept;
  Opener& operator=(Opener&&) = delete;
  ~Opener();

  Result<void> feed(std::span<const std::byte> bytes);
  // The file has ended. Only now the last bytes come.
  Result<void> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bsp::storage
