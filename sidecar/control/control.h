// The packets between the sidecar and bsp-init (PID 1 of the app container); messages.h has their contents.
//
// Transport: the unix SOCK_SEQPACKET socket names::kControlSocket. The sidecar listens; bsp-init connects and
// reconnects for as long as it lives. One message per packet, as text:
//
//   verb key=value key=value
//
// In keys and values, space, '=', '%', control bytes and everything outside ASCII are written as %XX, so that packets
// are readable in strace and a message may hold any string.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::control {

inline constexpr std::size_t kMaxPacket = 32 * 1024;

// One packet. messages.h defines its contents.
struct Message {
  std::string verb;
  std::map<std::string, std::string, std::less<>> fields;

  // "" or fallback if the key is absent (or, for number, not a decimal).
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t fallback = 0) const;

  bool operator==(const Message&) const = default;
};

std::string encode(const Message& message);
// kInvalid for an empty verb, a pair without '=', a broken escape or more than kMaxPacket bytes.
Result<Message> decode(std::string_view packet);

// One packet each. send: kUnavailable if the peer is gone (never SIGPIPE). receive: kUnavailable at end of file,
// kTimeout if nothing is there (non-blocking socket).
Result<void> send(int socket, const Message& message);
Result<Message> receive(int socket);

}  // namespace bsp::control
