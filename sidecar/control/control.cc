#include "sidecar/control/control.h"

#include <sys/socket.h>

#include <cerrno>
#include <charconv>

namespace bsp::control {
namespace {

bool plain(unsigned char c) { return c > 0x20 && c < 0x7f && c != '=' && c != '%'; }

void append_escaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (const unsigned char c : text) {
    if (plain(c)) {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

Result<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return fail(ErrorCode::kInvalid, "control message ends within an escape");
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return fail(ErrorCode::kInvalid, "control message has a broken escape");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

std::string Message::text(std::string_view key) const {
  const auto it = fields.find(key);
  return it == fields.end() ? std::string() : it->second;
}

std::int64_t Message::number(std::string_view key, std::int64_t fallback) const {
  const auto it = fields.find(key);
  if (it == fields.end()) return fallback;
  std::int64_t value = 0;
  const char* end = it->second.data() + it->second.size();
  const auto [at, error] = std::from_chars(it->second.data(), end, value);
  return error == std::errc() && at == end ? value : fallback;
}

std::string encode(const Message& message) {
  std::string out;
  append_escaped(out, message.verb);
  for (const auto& [key, value] : message.fields) {
    out += ' ';
    append_escaped(out, key);
    out += '=';
    append_escaped(out, value);
  }
  return out;
}

Result<Message> decode(std::string_view packet) {
  if (packet.size() > kMaxPacket) return fail(ErrorCode::kInvalid, "control message too long");
  Message message;
  bool first = true;
  while (!packet.empty() || first) {
    const std::size_t space = packet.find(' ');
    const std::string_view word = packet.substr(0, space);
    packet = space == std::string_view::npos ? std::string_view() : packet.substr(space + 1);
    if (first) {
      BSP_TRY(message.verb, unescaped(word));
      if (message.verb.empty()) return fail(ErrorCode::kInvalid, "control message without a verb");
      first = false;
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return fail(ErrorCode::kInvalid, "control message has a field without a key or '='");
    }
    BSP_TRY(std::string key, unescaped(word.substr(0, equals)));
    BSP_TRY(std::string value, unescaped(word.substr(equals + 1)));
    message.fields.insert_or_assign(std::move(key), std::move(value));
  }
  return message;
}

Result<void> send(int socket, const Message& message) {
  const std::string packet = encode(message);
  if (packet.size() > kMaxPacket) return fail(ErrorCode::kInvalid, "control message too long");
  for (;;) {
    if (::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return fail(ErrorCode::kTimeout, "control socket is full", true);
    return fail(ErrorCode::kUnavailable, "control socket is closed", true);
  }
}

Result<Message> receive(int socket) {
  std::string packet(kMaxPacket, '\0');
  for (;;) {
    const ssize_t n = ::recv(socket, packet.data(), packet.size(), MSG_TRUNC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return fail(ErrorCode::kTimeout, "no control message", true);
    if (n <= 0) return fail(ErrorCode::kUnavailable, "control socket is closed", true);
    if (static_cast<std::size_t>(n) > packet.size()) {
      return fail(ErrorCode::kInvalid, "control message too long");
    }
    packet.resize(static_cast<std::size_t>(n));
    return decode(packet);
  }
}

}  // namespace bsp::control
