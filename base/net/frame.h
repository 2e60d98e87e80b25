// The frames of crds/wire.h:  u32 header length | u64 body length | JSON header | body, big endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/core/error.h"
#include "base/json/bounded.h"

namespace bsp::net {

inline constexpr std::size_t kFramePrefix = 12;
// Upper limits for every verb: the modex of 1024 ranks is ~2 MB.
inline constexpr std::size_t kMaxHeader = 16u << 20;
inline constexpr std::size_t kMaxBody = 64u << 20;
inline constexpr MessageLimits kAnyFrame{.json = {.bytes = kMaxHeader, .values = 400'000, .depth = 32},
                                         .body = kMaxBody};

struct Frame {
  nlohmann::json header;  // always an object
  std::string body;
};

// Prefix and header; the body follows them on the wire.
std::string encode_frame_head(const nlohmann::json& header, std::size_t body_size);

// An answer's header is {"ok": true, fields}, or {"error": {"code", "message"}} if the request failed.
nlohmann::json error_header(const Error& error);
Result<Frame> as_answer(Frame frame);

// Turns received bytes into whole frames. Memory grows with the bytes that have arrived, not with the sizes that a
// prefix announces.
class FrameReader {
 public:
  explicit FrameReader(MessageLimits limits = kAnyFrame) : limits_(limits) {}
  // Sets the limits of the next frame, even if part of it has arrived.
  void expect(MessageLimits limits) { limits_ = limits; }
  void append(std::span<const std::byte> bytes);
  // The next frame; nullopt if it needs more bytes; or an error, after which the connection is unusable.
  Result<std::optional<Frame>> next();
  // Whether part of a frame has arrived.
  [[nodiscard]] bool partial() const { return !buffer_.empty(); }

 private:
  MessageLimits limits_;
  std::string buffer_;
};

}  // namespace bsp::net
