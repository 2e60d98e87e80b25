#include "base/net/resolve.h"

#include <netdb.h>

#include <cstring>
#include <format>

#include "base/net/address.h"

namespace bsp::net {

Result<std::string> resolve(const std::string& host_and_port) {
  const std::size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::kInvalid, std::format("address \"{}\" is not host:port", host_and_port));
  const std::string host = host_and_port.substr(0, colon), port = host_and_port.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return fail(ErrorCode::kUnavailable, std::format("{}: {}", host, ::gai_strerror(error)), true);
  Address address;
  address.size = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return to_string(address);
}

}  // namespace bsp::net
