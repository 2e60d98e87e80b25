#include "sidecar/transfer/passed_fd.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace bsp::transfer {
namespace {

// A message of one byte with the space for one descriptor.
struct OneFd {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};

  OneFd() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  OneFd(const OneFd&) = delete;  // it points into itself
  OneFd& operator=(const OneFd&) = delete;
};

}  // namespace

Result<void> pass_fd(int socket, const Fd& fd) {
  OneFd one;
  cmsghdr* const header = CMSG_FIRSTHDR(&one.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(header), &number, sizeof(number));
  if (::sendmsg(socket, &one.message, MSG_NOSIGNAL) != 1) return fail_errno("passing a file descriptor");
  return {};
}

Result<std::optional<Fd>> take_fd(int socket) {
  OneFd one;
  const ssize_t n = ::recvmsg(socket, &one.message, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
  if (n < 0) return fail_errno("receiving a file descriptor");
  const cmsghdr* const header = n == 1 ? CMSG_FIRSTHDR(&one.message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    return fail(ErrorCode::kRefused, "no file descriptor came");
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof(number));
  return Fd(number);
}

}  // namespace bsp::transfer
