#include "sidecar/transfer/capture_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "sidecar/transfer/passed_fd.h"

namespace bsp::transfer {

Result<CaptureClient> CaptureClient::connect(const std::string& dir) {
  const std::string path = dir + "/streamer-capture.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::kInvalid, "path too long for a socket: " + path);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  CaptureClient client;
  client.socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!client.socket_ || ::connect(client.socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return fail_errno("the sidecar's capture socket " + path);
  }
  return client;
}

Result<Fd> CaptureClient::open_file(std::string_view name) {
  // u32 length, then protobuf: field 1, length-delimited.
  const auto size = static_cast<std::uint32_t>(name.size() + 2);
  std::string request(reinterpret_cast<const char*>(&size), sizeof(size));
  request += '\x0a';
  request += static_cast<char>(name.size());  // names are short: the length is a one-byte varint
  request += name;
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return fail_errno("writing to the capture socket");
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("making a pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  if (auto passed = pass_fd(socket_.get(), read_end); !passed)
    return std::unexpected(passed.error().in("the capture socket"));
  return write_end;
}

Result<void> CaptureClient::send_file(std::string_view name, std::string_view content) {
  BSP_TRY(const Fd pipe, open_file(name));
  if (::write(pipe.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return fail_errno("writing " + std::string(name));
  }
  return {};
}

}  // namespace bsp::transfer
