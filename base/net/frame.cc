#include "base/net/frame.h"

#include <cstring>

namespace bsp::net {
namespace {

constexpr std::size_t kMaxErrorText = 2048;

template <class Unsigned>
void put(std::string& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift & 0xff);
}

template <class Unsigned>
Unsigned get(const char* from) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(from[i]));
  return value;
}

}  // namespace

std::string encode_frame_head(const nlohmann::json& header, std::size_t body_size) {
  // Strings may hold output of programs and tools, which need not be UTF-8.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(kFramePrefix + text.size());
  put(out, static_cast<std::uint32_t>(text.size()));
  put(out, static_cast<std::uint64_t>(body_size));
  out += text;
  return out;
}

nlohmann::json error_header(const Error& error) {
  return {{"error", {{"code", to_string(error.code)}, {"message", error.message}, {"retryable", error.retryable}}}};
}

Result<Frame> as_answer(Frame frame) {
  auto error = frame.header.find("error");
  if (error == frame.header.end()) return frame;
  if (!error->is_object()) return fail(ErrorCode::kFailed, "the peer answered with a malformed error");
  auto text = [&](const char* key) {
    auto it = error->find(key);
    std::string value = it != error->end() && it->is_string() ? it->get<std::string>() : std::string();
    cut_text(value, kMaxErrorText);  // it ends up in logs and in objects
    return value;
  };
  auto retryable = error->find("retryable");
  return fail(error_code_from(text("code")), text("message"),
              retryable != error->end() && retryable->is_boolean() && retryable->get<bool>());
}

void FrameReader::append(std::span<const std::byte> bytes) {
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Frame>> FrameReader::next() {
  if (buffer_.size() < kFramePrefix) return std::nullopt;
  std::size_t header_size = get<std::uint32_t>(buffer_.data());
  std::uint64_t body_size = get<std::uint64_t>(buffer_.data() + 4);
  if (limits_.json.bytes == 0) return fail(ErrorCode::kRefused, "the peer sent an unsolicited message");
  if (header_size > limits_.json.bytes || body_size > limits_.body)
    return fail(ErrorCode::kInvalid, std::format("a frame of {} + {} bytes exceeds the limits of {} + {}", header_size,
                                                 body_size, limits_.json.bytes, limits_.body));
  std::size_t whole = kFramePrefix + header_size + static_cast<std::size_t>(body_size);
  if (buffer_.size() < whole) return std::nullopt;

  Frame frame;
  std::string_view header(buffer_.data() + kFramePrefix, header_size);
  auto parsed = parse_bounded(header, limits_.json);
  if (!parsed) return std::unexpected(parsed.error().in("a frame's header"));
  frame.header = std::move(*parsed);
  if (!frame.header.is_object()) return fail(ErrorCode::kInvalid, "a frame's header is not a JSON object");
  frame.body.assign(buffer_, kFramePrefix + header_size, static_cast<std::size_t>(body_size));
  if (buffer_.size() == whole)
    std::string().swap(buffer_);  // frees the memory of a large frame
  else
    buffer_.erase(0, whole);
  return frame;
}

}  // namespace bsp::net
