#include "sidecar/storage/delta.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <format>
#include <optional>

#include "base/core/base64.h"
#include "crds/reflect.h"

namespace bsp::storage {
namespace {

constexpr std::string_view kDeltaMagic = "bspdelt1";
constexpr std::size_t kDeltaPrefix = kDeltaMagic.size() + 4;
constexpr std::byte kLiteral{0}, kCopy{1};
constexpr std::size_t kLiteralHead = 1 + 4, kCopyHead = 1 + 8 + 4;
constexpr std::uint64_t kMostCopied = 1 << 30;  // in one record

template <class Int>
void put(std::byte* at, Int value) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) at[i] = static_cast<std::byte>(value >> (8 * (sizeof(Int) - 1 - i)));
}
template <class Int>
Int get(std::span<const std::byte> from) {
  Int value = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) value = static_cast<Int>(value << 8 | static_cast<Int>(from[i]));
  return value;
}

std::unexpected<Error> bad_delta(std::string_view what) {
  return fail(ErrorCode::kRefused, std::format("the stored image is damaged: {}", what));
}

bool before(const Block& a, const Block& b) { return a.digest != b.digest ? a.digest < b.digest : a.at < b.at; }

std::span<const Block> same_as(const Base& base, const Block& block) {
  const auto [first, last] = std::ranges::equal_range(base.blocks, block.digest, {}, &Block::digest);
  return {first, last};
}

// Of the blocks that the base has once, the longest sequence that is in the same order there (patience sorting). Blocks that it
// has often fit anywhere, and would lead away from the right place. Indices into `blocks`.
std::vector<std::uint32_t> anchors(const Base& base, std::span<const Block> blocks) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  struct Pile {
    std::uint64_t from;
    std::uint32_t block;
  };
  std::vector<Pile> piles;
  std::vector<std::uint32_t> earlier(blocks.size(), kNone);
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const auto same = same_as(base, blocks[i]);
    if (same.size() != 1) continue;
    const auto pile = std::ranges::lower_bound(piles, same[0].at, {}, &Pile::from);
    if (pile != piles.begin()) earlier[i] = std::prev(pile)->block;
    if (pile == piles.end())
      piles.push_back({same[0].at, i});
    else
      *pile = {same[0].at, i};
  }
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = piles.empty() ? kNone : piles.back().block; i != kNone; i = earlier[i]) found.push_back(i);
  std::ranges::reverse(found);
  return found;
}

}  // namespace

BlockDigest digest_of(std::span<const std::byte> block) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> all{};
  unsigned size = 0;
  check(EVP_Digest(block.data(), block.size(), all.data(), &size, EVP_sha256(), nullptr) == 1, "SHA-256 works");
  BlockDigest digest;
  std::memcpy(digest.data(), all.data(), digest.size());
  return digest;
}

Base::~Base() { OPENSSL_cleanse(key.data(), key.size()); }

void order_blocks(std::vector<Block>& blocks) { std::ranges::sort(blocks, before); }

std::vector<Copy> copies_from(const Base& base, std::span<const Block> blocks) {
  const auto fixed = anchors(base, blocks);
  std::vector<Copy> copies;
  std::uint64_t next = 0;  // in the base
  std::size_t anchor = 0;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const auto same = same_as(base, blocks[i]);
    std::optional<std::uint64_t> from;
    if (anchor < fixed.size() && fixed[anchor] == i) {
      from = same[0].at;
      ++anchor;
    } else if (same.size() > 1) {
      const std::uint64_t limit =
          anchor < fixed.size() ? same_as(base, blocks[fixed[anchor]])[0].at : UINT64_MAX - base.block;
      const auto free = std::ranges::lower_bound(same, next, {}, &Block::at);
      if (free != same.end() && free->at + base.block <= limit) from = free->at;
    }
    if (!from) continue;
    next = *from + base.block;
    Copy* last = copies.empty() ? nullptr : &copies.back();
    if (last && last->at + last->bytes == blocks[i].at && last->from + last->bytes == *from &&
        last->bytes + base.block <= kMostCopied)
      last->bytes += base.block;
    else
      copies.push_back({blocks[i].at, *from, base.block});
  }
  return copies;
}

// --- Writing -------------------------------------------------------------------------------------------

DeltaWriter::DeltaWriter(const Base& base, std::vector<Copy> copies, std::uint64_t bytes)
    : copies_(std::move(copies)), bytes_(bytes) {
  const std::string text = reflect::write(DeltaHeader{base.name, base.digest, base64_encode(base.key), bytes}).dump();
  header_ = std::string(kDeltaMagic) + std::string(4, '\0') + text;
  put(reinterpret_cast<std::byte*>(header_.data()) + kDeltaMagic.size(), static_cast<std::uint32_t>(text.size()));
  size_ = header_.size();
  std::uint64_t at = 0;
  const auto literals = [&](std::uint64_t until) {
    size_ += until - at + (until - at + kChunk - 1) / kChunk * kLiteralHead;
  };
  for (const Copy& copy : copies_) {
    literals(copy.at);
    size_ += kCopyHead;
    at = copy.at + copy.bytes;
  }
  literals(bytes_);
}

Result<void> DeltaWriter::write(const Read& read, const Sink& sink) const {
  BSP_CHECK_OK(sink(std::as_bytes(std::span(header_))));
  std::vector<std::byte> record(kLiteralHead + kChunk);
  std::uint64_t at = 0;
  const auto literals = [&](std::uint64_t until) -> Result<void> {
    while (at < until) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, until - at));
      record[0] = kLiteral;
      put(record.data() + 1, static_cast<std::uint32_t>(n));
      BSP_CHECK_OK(read(at, std::span(record).subspan(kLiteralHead, n)));
      BSP_CHECK_OK(sink(std::span(record).first(kLiteralHead + n)));
      at += n;
    }
    return {};
  };
  for (const Copy& copy : copies_) {
    BSP_CHECK_OK(literals(copy.at));
    std::array<std::byte, kCopyHead> head{kCopy};
    put(head.data() + 1, copy.from);
    put(head.data() + 9, static_cast<std::uint32_t>(copy.bytes));
    BSP_CHECK_OK(sink(head));
    at = copy.at + copy.bytes;
  }
  return literals(bytes_);
}

// --- Reading -------------------------------------------------------------------------------------------

ImageReader::ImageReader(std::unique_ptr<StoredImage> file, std::string_view key, const ImageName& name,
                         const std::string& digest)
    : file_(std::move(file)),
      buffer_(kChunk),
      opener_(key, name, digest, [this](std::span<const std::byte> plain) -> Result<void> {
        plain_.insert(plain_.end(), plain.begin(), plain.end());
        return {};
      }) {}

Result<bool> ImageReader::more() {
  if (ended_) return false;
  BSP_TRY(const std::size_t n, file_->read(buffer_));
  ended_ = n == 0;
  BSP_CHECK_OK(ended_ ? opener_.finish() : opener_.feed(std::span(buffer_).first(n)));
  return true;
}

Result<void> ImageReader::read(std::uint64_t at, std::span<std::byte> into) {
  if (at < at_) return bad_delta("its parts aren't in order");
  while (!into.empty()) {
    if (const std::uint64_t left = at_ + plain_.size(); at >= left) {
      at_ = left;
      plain_.clear();
      BSP_TRY(const bool came, more());
      if (!came) return bad_delta("it needs more than there is of the image that it builds on");
      continue;
    }
    const auto piece = std::span(plain_).subspan(static_cast<std::size_t>(at - at_));
    const std::size_t n = std::min(piece.size(), into.size());
    std::memcpy(into.data(), piece.data(), n);
    into = into.subspan(n);
    at += n;
  }
  return {};
}

Result<void> ImageReader::finish() {
  for (;;) {
    at_ += plain_.size();
    plain_.clear();
    BSP_TRY(const bool came, more());
    if (!came) return {};
  }
}

struct Unpacker::Impl {
  ImageName name;
  OpenBase open_base;
  Sink sink;
  enum class Kind { kUnknown, kWhole, kDelta } kind = Kind::kUnknown;
  std::vector<std::byte> head{};  // the header's or a record's, as far as it has come
  bool has_header = false;
  std::string base_text{};  // for messages
  std::unique_ptr<ImageReader> base{};
  bool base_ended = false;
  std::uint64_t left = 0;     // of the image
  std::uint64_t literal = 0;  // bytes that are still to come of a record
  std::vector<std::byte> piece = {};
  std::optional<Error> error{};

  // False: `want` bytes aren't there yet.
  bool collect(std::size_t want, std::span<const std::byte>& bytes) {
    const auto next = bytes.first(std::min(bytes.size(), want - std::min(want, head.size())));
    head.insert(head.end(), next.begin(), next.end());
    bytes = bytes.subspan(next.size());
    return head.size() >= want;
  }

  Result<void> of_base(Result<void> result) const {
    if (result) return result;
    return std::unexpected(result.error().in(base_text));
  }

  Result<void> give(std::span<const std::byte> bytes) {
    if (bytes.size() > left) return bad_delta("it has more than it says");
    left -= bytes.size();
    if (left == 0 && !base_ended) {
      BSP_CHECK_OK(of_base(base->finish()));
      base_ended = true;
    }
    return sink(bytes);
  }

  Result<void> read_header(std::string_view text) {
    auto parsed = parse_bounded(text, {.bytes = kMostHeader, .values = 64, .depth = 4});
    if (!parsed) return bad_delta("what it says of its base can't be read");
    auto header = reflect::read<DeltaHeader>(*parsed, "delta", {.most_whole = UINT64_MAX});
    if (!header) return bad_delta(header.error().message);
    auto key = base64_decode(header->key);
    const ImageName& of = header->base;
    if (!key || header->bytes == 0 || of.job_uid != name.job_uid || of.rank != name.rank || of.ranks != name.ranks ||
        of.attempt != name.attempt || of.set >= name.set)
      return bad_delta("what it says of its base is implausible");
    left = header->bytes;
    base_text = std::format("the image of set {}, which it builds on", of.set);
    auto file = open_base(of);
    if (!file) return std::unexpected(file.error().in(base_text));
    base = std::make_unique<ImageReader>(std::move(*file), *key, of, header->digest);
    OPENSSL_cleanse(key->data(), key->size());
    piece.resize(kChunk);
    has_header = true;
    head.clear();
    return {};
  }

  Result<void> copy(std::uint64_t from, std::uint64_t bytes) {
    if (bytes == 0 || bytes > kMostCopied) return bad_delta("it copies an impossible number of bytes");
    while (bytes > 0) {
      const auto next = std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), bytes)));
      BSP_CHECK_OK(of_base(base->read(from, next)));
      BSP_CHECK_OK(give(next));
      from += next.size();
      bytes -= next.size();
    }
    return {};
  }

  Result<void> take(std::span<const std::byte> bytes) {
    if (bytes.empty()) return {};
    // An image begins with a frame of the stream of a dump, whose type is a small number.
    if (kind == Kind::kUnknown) kind = bytes[0] == static_cast<std::byte>(kDeltaMagic[0]) ? Kind::kDelta : Kind::kWhole;
    if (kind == Kind::kWhole) return sink(bytes);
    if (!has_header) {
      if (!collect(kDeltaPrefix, bytes)) return {};
      if (!std::ranges::equal(std::span(head).first(kDeltaMagic.size()), std::as_bytes(std::span(kDeltaMagic))))
        return bad_delta("its content is of no known kind");
      const auto length = get<std::uint32_t>(std::span(head).subspan(kDeltaMagic.size(), 4));
      if (length == 0 || length > kMostHeader) return bad_delta("what it says of its base has an impossible length");
      if (!collect(kDeltaPrefix + length, bytes)) return {};
      BSP_CHECK_OK(read_header({reinterpret_cast<const char*>(head.data()) + kDeltaPrefix, length}));
    }
    while (!bytes.empty()) {
      if (literal > 0) {
        const auto next = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(literal, bytes.size())));
        BSP_CHECK_OK(give(next));
        bytes = bytes.subspan(next.size());
        literal -= next.size();
        continue;
      }
      if (!collect(1, bytes)) return {};
      if (head[0] != kLiteral && head[0] != kCopy) return bad_delta("it has a part of no known kind");
      if (!collect(head[0] == kLiteral ? kLiteralHead : kCopyHead, bytes)) return {};
      const std::span<const std::byte> record(head);
      if (head[0] == kLiteral) {
        literal = get<std::uint32_t>(record.subspan(1, 4));
        if (literal == 0) return bad_delta("it has an empty part");
      } else {
        BSP_CHECK_OK(copy(get<std::uint64_t>(record.subspan(1, 8)), get<std::uint32_t>(record.subspan(9, 4))));
      }
      head.clear();
    }
    return {};
  }

  Result<void> end() const {
    if (kind == Kind::kWhole) return {};
    if (!has_header || !head.empty() || literal > 0 || left > 0) return bad_delta("its content ends too early");
    return {};
  }

  Result<void> keep(Result<void> result) {
    if (!result) error = result.error();
    return result;
  }
};

Unpacker::Unpacker(ImageName name, OpenBase open_base, Sink sink)
    : impl_(std::make_unique<Impl>(
          Impl{.name = std::move(name), .open_base = std::move(open_base), .sink = std::move(sink)})) {}
Unpacker::~Unpacker() = default;

Result<void> Unpacker::feed(std::span<const std::byte> bytes) {
  if (impl_->error) return std::unexpected(*impl_->error);
  return impl_->keep(impl_->take(bytes));
}

Result<void> Unpacker::finish() {
  if (impl_->error) return std::unexpected(*impl_->error);
  return impl_->keep(impl_->end());
}

}  // namespace bsp::storage
