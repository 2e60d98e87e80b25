// Arbitrary bytes for the reader of stored images: nobody without the key can make a file whose end it passes on. And a
// whole file that the input damages is refused.
#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <format>
#include <string>
#include <vector>

#include "sidecar/storage/image.h"

namespace {

using namespace bsp;
using namespace bsp::storage;

const std::string kKey(kKeyBytes, 'k');
const ImageName kName{.job_uid = "u", .set = 1, .epoch = 3, .attempt = 0, .rank = 1, .ranks = 2};

std::string digest_of(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += std::format("{:02x}", digest[i]);
  return text;
}

// The plain bytes; the digest is right, as that of whoever could change the status, too.
std::size_t read(std::span<const std::byte> file, std::size_t piece, bool& whole) {
  std::size_t plain = 0;
  Opener opener(kKey, kName, digest_of(file), [&](std::span<const std::byte> bytes) -> Result<void> {
    plain += bytes.size();
    return {};
  });
  Result<void> result;
  for (std::size_t at = 0; at < file.size() && result; at += piece)
    result = opener.feed(file.subspan(at, std::min(piece, file.size() - at)));
  if (result) result = opener.finish();
  whole = result.has_value();
  if (!whole)
    check(result.error().code == ErrorCode::kRefused && !result.error().message.empty(), "a refusal says why");
  check(!opener.finish(), "nothing is read twice");
  return plain;
}

const std::vector<std::byte>& whole_file() {
  static const std::vector<std::byte> file = [] {
    std::vector<std::byte> made;
    auto sealer = Sealer::begin(kKey, kName, kChunk + 100, [&](std::span<const std::byte> bytes) -> Result<void> {
      made.insert(made.end(), bytes.begin(), bytes.end());
      return {};
    });
    check(sealer && sealer->add(std::vector<std::byte>(kChunk + 100)) && sealer->finish(), "an image is made");
    return made;
  }();
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const std::size_t piece = 1 + size % 4099;
  bool whole = false;
  check(read(input, piece, whole) == 0 && !whole, "no file is made without the key");

  // A whole file with the input somewhere in it: what differs from it is refused.
  std::vector<std::byte> file = whole_file();
  const std::size_t at = size < 4 ? size : (data[0] | data[1] << 8 | data[2] << 16) % file.size();
  std::ranges::copy(input.first(std::min(input.size(), file.size() - at)),
                    file.begin() + static_cast<std::ptrdiff_t>(at));
  const bool same = file == whole_file();
  const std::size_t plain = read(file, kChunk / 3 + size, whole);
  check(whole == same, "a damaged file is refused, and only that");
  check(same || plain < kChunk + 100, "and not all of it passed on");
  return 0;
}
