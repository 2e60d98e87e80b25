#include "sidecar/storage/image.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <optional>
#include <vector>

#include "base/core/hex.h"
#include "crds/reflect.h"

namespace bsp::storage {
namespace {

constexpr std::string_view kMagic = "bspset1\n";
constexpr std::string_view kPurpose = "bspset1 image";
constexpr std::size_t kPrefix = kMagic.size() + 4;
constexpr std::size_t kSalt = 32;
constexpr std::size_t kNonce = 12;

template <class T, void (*free)(T*)>
struct Free {
  void operator()(T* p) const { free(p); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Free<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>>;
using Hash = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX, EVP_MD_CTX_free>>;

unsigned char* bytes_of(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }

std::string hexadecimal(std::span<const unsigned char> bytes) {
  return hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Whether the text is that many bytes in lower-case hexadecimal.
bool is_hexadecimal(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The key of one file; wiped when it goes.
class ImageKey {
 public:
  static Result<ImageKey> of(std::string_view set_key, std::string_view salt) {
    if (set_key.size() != kKeyBytes)
      return fail(ErrorCode::kInvalid, std::format("a set's key has {} bytes, not {}", kKeyBytes, set_key.size()));
    ImageKey key;
    std::unique_ptr<EVP_KDF, Free<EVP_KDF, EVP_KDF_free>> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
    std::unique_ptr<EVP_KDF_CTX, Free<EVP_KDF_CTX, EVP_KDF_CTX_free>> context(kdf ? EVP_KDF_CTX_new(kdf.get())
                                                                                  : nullptr);
    char digest[] = "SHA256";
    const auto octets = [](const char* name, std::string_view value) {
      return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(value.data()), value.size());
    };
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                     octets(OSSL_KDF_PARAM_KEY, set_key), octets(OSSL_KDF_PARAM_SALT, salt),
                                     octets(OSSL_KDF_PARAM_INFO, kPurpose), OSSL_PARAM_construct_end()};
    if (!context || EVP_KDF_derive(context.get(), key.key_.data(), key.key_.size(), parameters) != 1)
      return fail(ErrorCode::kFailed, "the key of an image can't be derived");
    return key;
  }
  ImageKey(const ImageKey&) = default;
  ImageKey& operator=(const ImageKey&) = default;
  ~ImageKey() { OPENSSL_cleanse(key_.data(), key_.size()); }
  [[nodiscard]] const unsigned char* data() const { return key_.data(); }

 private:
  ImageKey() = default;
  std::array<unsigned char, kKeyBytes> key_{};
};

std::array<unsigned char, kNonce> nonce_of(std::uint32_t chunk, bool last) {
  std::array<unsigned char, kNonce> nonce{};
  nonce[7] = last ? 1 : 0;
  for (std::size_t i = 0; i < 4; ++i) nonce[8 + i] = static_cast<unsigned char>(chunk >> (24 - 8 * i));
  return nonce;
}

std::uint64_t chunks_of(std::uint64_t bytes) { return (bytes + kChunk - 1) / kChunk; }

// A chunk's number has 32 bits: 1 PiB.
bool is_possible(std::uint64_t bytes) { return bytes > 0 && chunks_of(bytes) <= UINT32_MAX; }

class FileHash {
 public:
  FileHash() : context_(EVP_MD_CTX_new()) {
    check(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "SHA-256 is available");
  }
  void add(std::span<const std::byte> bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 works");
  }
  std::string value() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1, "SHA-256 works");
    return hexadecimal(std::span(digest).first(size));
  }

 private:
  Hash context_;
};

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::kRefused, std::format("the stored image is damaged: {}", what));
}

std::string text_of(const ImageName& name) {
  return std::format("rank {} of {} in set {} of job {} (epoch {}, attempt {})", name.rank, name.ranks, name.set,
                     name.job_uid, name.epoch, name.attempt);
}

}  // namespace

// --- Sealer ------------------------------------------------------------------------------------------
struct Sealer::Impl {
  ImageKey key;
  std::vector<std::byte> prefix;
  std::uint64_t left;
  Sink sink;
  Cipher cipher{EVP_CIPHER_CTX_new()};
  FileHash hash{};
  std::vector<std::byte> plain{};
  std::vector<std::byte> sealed = std::vector<std::byte>(kChunk + kTag);
  std::uint32_t chunk = 0;
  std::uint64_t written = 0;

  Result<void> write(std::span<const std::byte> bytes) {
    hash.add(bytes);
    written += bytes.size();
    return sink(bytes);
  }

  Result<void> seal(bool last) {
    const auto nonce = nonce_of(chunk++, last);
    const auto size = static_cast<int>(plain.size());
    int n = 0;
    const bool ok =
        cipher && EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce.data()) == 1 &&
        EVP_EncryptUpdate(cipher.get(), nullptr, &n, bytes_of(prefix.data()), static_cast<int>(prefix.size())) == 1 &&
        EVP_EncryptUpdate(cipher.get(), bytes_of(sealed.data()), &n, bytes_of(plain.data()), size) == 1 && n == size &&
        EVP_EncryptFinal_ex(cipher.get(), bytes_of(sealed.data()) + size, &n) == 1 && n == 0 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTag, sealed.data() + size) == 1;
    if (!ok) return fail(ErrorCode::kFailed, "encrypting an image");
    plain.clear();
    return write(std::span(sealed).first(static_cast<std::size_t>(size) + kTag));
  }
};

Sealer::Sealer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sealer::Sealer(Sealer&&) noexcept = default;
Sealer::~Sealer() = default;

Result<Sealer> Sealer::begin(std::string_view key, const ImageName& name, std::uint64_t bytes, Sink sink) {
  if (!is_possible(bytes)) return fail(ErrorCode::kInvalid, std::format("an image of {} bytes", bytes));
  std::array<unsigned char, kSalt> salt{};
  if (RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1)
    return fail(ErrorCode::kFailed, "there are no random bytes");
  const ImageHeader header{name, bytes, hexadecimal(salt)};
  BSP_TRY(const ImageKey of_image, ImageKey::of(key, header.salt));
  const std::string text = reflect::write(header).dump();
  if (text.size() > kMostHeader) return fail(ErrorCode::kInvalid, "the image's name is too long");
  std::vector<std::byte> prefix(kPrefix + text.size());
  std::memcpy(prefix.data(), kMagic.data(), kMagic.size());
  for (std::size_t i = 0; i < 4; ++i) prefix[kMagic.size() + i] = static_cast<std::byte>(text.size() >> (24 - 8 * i));
  std::memcpy(prefix.data() + kPrefix, text.data(), text.size());
  auto impl = std::make_unique<Impl>(
      Impl{.key = of_image, .prefix = std::move(prefix), .left = bytes, .sink = std::move(sink)});
  impl->plain.reserve(kChunk);
  BSP_CHECK_OK(impl->write(impl->prefix));
  return Sealer(std::move(impl));
}

Result<void> Sealer::add(std::span<const std::byte> plain) {
  Impl& s = *impl_;
  if (plain.size() > s.left) return fail(ErrorCode::kInvalid, "the image is larger than it was announced");
  s.left -= plain.size();
  while (!plain.empty()) {
    const auto piece = plain.first(std::min(plain.size(), kChunk - s.plain.size()));
    s.plain.insert(s.plain.end(), piece.begin(), piece.end());
    plain = plain.subspan(piece.size());
    const bool last = s.left == 0 && plain.empty();
    if (s.plain.size() == kChunk || last) BSP_CHECK_OK(s.seal(last));
  }
  return {};
}

Result<Sealed> Sealer::finish() {
  if (impl_->left > 0) return fail(ErrorCode::kInvalid, "the image is smaller than it was announced");
  return Sealed{impl_->written, impl_->hash.value()};
}

// --- Opener ------------------------------------------------------------------------------------------
struct Opener::Impl {
  std::string set_key;
  ImageName expected;
  std::string digest;
  Sink sink;
  Cipher cipher{EVP_CIPHER_CTX_new()};
  FileHash hash{};
  std::optional<ImageKey> key{};
  std::vector<std::byte> prefix{};
  std::vector<std::byte> sealed{};  // of the chunk that is being collected
  std::vector<std::byte> plain = std::vector<std::byte>(kChunk);
  std::uint64_t left = 0;  // plain bytes that are still to come
  std::uint32_t chunk = 0;
  std::optional<Error> error{};

  [[nodiscard]] std::size_t next_chunk() const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, kChunk));
  }
  [[nodiscard]] bool is_last() const { return left <= kChunk; }

  [[nodiscard]] std::size_t header_bytes() const {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<std::size_t>(prefix[kMagic.size() + i]);
    return length;
  }

  Result<void> read_header() {
    const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + kPrefix, prefix.size() - kPrefix);
    auto parsed = parse_bounded(text, {.bytes = kMostHeader, .values = 64, .depth = 4});
    if (!parsed) return damaged("its header can't be read");
    auto header = reflect::read<ImageHeader>(*parsed, "header", {.most_whole = UINT64_MAX});
    if (!header) return damaged(header.error().message);
    if (header->name != expected)
      return fail(ErrorCode::kRefused,
                  std::format("the stored image is that of {}, not of {}", text_of(header->name), text_of(expected)));
    if (!is_possible(header->bytes) || !is_hexadecimal(header->salt, kSalt))
      return damaged("its header is implausible");
    left = header->bytes;
    BSP_TRY(key, ImageKey::of(set_key, header->salt));
    return {};
  }

  // Passes on the chunk that has been collected.
  Result<void> open(bool last) {
    const auto size = sealed.size() - kTag;
    const auto nonce = nonce_of(chunk++, last);
    int n = 0;
    const bool ok =
        cipher && EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key->data(), nonce.data()) == 1 &&
        EVP_DecryptUpdate(cipher.get(), nullptr, &n, bytes_of(prefix.data()), static_cast<int>(prefix.size())) == 1 &&
        EVP_DecryptUpdate(cipher.get(), bytes_of(plain.data()), &n, bytes_of(sealed.data()), static_cast<int>(size)) ==
            1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTag, sealed.data() + size) == 1 &&
        EVP_DecryptFinal_ex(cipher.get(), bytes_of(plain.data()) + size, &n) == 1;
    if (!ok) return damaged("it was changed, or encrypted under another key");
    left -= size;
    sealed.clear();
    return sink(std::span(plain).first(size));
  }

  // Collects `want` bytes in `into`; true: they are there.
  static bool collect(std::vector<std::byte>& into, std::size_t want, std::span<const std::byte>& bytes) {
    const auto piece = bytes.first(std::min(bytes.size(), want - into.size()));
    into.insert(into.end(), piece.begin(), piece.end());
    bytes = bytes.subspan(piece.size());
    return into.size() == want;
  }

  Result<void> take(std::span<const std::byte> bytes) {
    hash.add(bytes);
    if (!key) {
      if (prefix.size() < kPrefix && !collect(prefix, kPrefix, bytes)) return {};
      if (!std::ranges::equal(std::span(prefix).first(kMagic.size()), std::as_bytes(std::span(kMagic))))
        return damaged("it is no image of a checkpoint set");
      const std::size_t length = header_bytes();
      if (length == 0 || length > kMostHeader) return damaged("its header has an impossible length");
      if (!collect(prefix, kPrefix + length, bytes)) return {};
      BSP_CHECK_OK(read_header());
    }
    while (!bytes.empty()) {
      const bool whole = collect(sealed, next_chunk() + kTag, bytes);
      if (whole && is_last()) {
        // It waits for finish(), which knows the digest.
        if (!bytes.empty()) return damaged("bytes follow its end");
        return {};
      }
      if (whole) BSP_CHECK_OK(open(false));
    }
    return {};
  }

  Result<void> end() {
    if (!key || !is_last() || sealed.size() != next_chunk() + kTag) return damaged("it is truncated");
    if (hash.value() != digest) return damaged("it is not the file that was stored");
    return open(true);
  }

  Result<void> keep(Result<void> result) {
    if (!result) error = result.error();
    return result;
  }
};

Opener::Opener(std::string_view key, ImageName expected, std::string digest, Sink sink)
    : impl_(std::make_unique<Impl>(Impl{.set_key = std::string(key),
                                        .expected = std::move(expected),
                                        .digest = std::move(digest),
                                        .sink = std::move(sink)})) {}
Opener::Opener(Opener&&) noexcept = default;
Opener::~Opener() {
  if (impl_) OPENSSL_cleanse(impl_->set_key.data(), impl_->set_key.size());
}

Result<void> Opener::feed(std::span<const std::byte> bytes) {
  if (impl_->error) return std::unexpected(*impl_->error);
  return impl_->keep(impl_->take(bytes));
}

Result<void> Opener::finish() {
  if (impl_->error) return std::unexpected(*impl_->error);
  auto ended = impl_->keep(impl_->end());
  if (ended) impl_->error = Error{ErrorCode::kInvalid, "the image was read already"};
  return ended;
}

}  // namespace bsp::storage
