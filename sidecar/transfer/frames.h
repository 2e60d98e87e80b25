// The byte format of the frames of stream.h, shared by both ends.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace bsp::transfer {

enum class FrameType : std::uint8_t {
  kBegin = 1,
  kOpen = 2,
  kData = 3,
  kClose = 4,
  kEnd = 5,
  kAbort = 6,
};

inline constexpr std::string_view kMagic = "bspckpt1";
inline constexpr std::size_t kHeaderBytes = 1 + 4 + 4 + 4;
inline constexpr std::size_t kChecksumBytes = 16;
inline constexpr std::size_t kMaxData = 256 * 1024;  // payload of one Data frame
inline constexpr std::size_t kMaxText = 4096;        // payload of every other frame

using Checksum = std::array<std::byte, kChecksumBytes>;

template <class Int>
void put_int(std::byte* at, Int value) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    at[i] = static_cast<std::byte>(value >> (8 * (sizeof(Int) - 1 - i)));
  }
}

template <class Int>
Int get_int(const std::byte* at) {
  Int value = 0;
  for (std::size_t i = 0; i < sizeof(Int); ++i) {
    value = static_cast<Int>(value << 8 | static_cast<Int>(at[i]));
  }
  return value;
}

struct FrameHeader {
  FrameType type{};
  std::uint32_t file = 0;
  std::uint32_t sequence = 0;
  std::uint32_t length = 0;
};

inline void put_header(std::byte* at, const FrameHeader& h) {
  at[0] = static_cast<std::byte>(h.type);
  put_int(at + 1, h.file);
  put_int(at + 5, h.sequence);
  put_int(at + 9, h.length);
}

inline FrameHeader get_header(const std::byte* at) {
  return {static_cast<FrameType>(at[0]), get_int<std::uint32_t>(at + 1), get_int<std::uint32_t>(at + 5),
          get_int<std::uint32_t>(at + 9)};
}

// XXH3-128 of the added data, as 16 big-endian bytes (the canonical form).
class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  [[nodiscard]] Checksum value() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    Checksum out;
    std::memcpy(out.data(), canonical.digest, out.size());
    return out;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace bsp::transfer
