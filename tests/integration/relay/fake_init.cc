#include "tests/integration/relay/fake_init.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace bsp::test {
namespace {

Fd connect_to(const std::string& path, int type) {
  Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("connecting to " + path + ": " + std::strerror(errno));
  return socket;
}

}  // namespace

FakeInit::FakeInit(std::string run_dir, control::ProgramState state, uid_t program)
    : run_dir_(std::move(run_dir)), socket_(connect_to(run_dir_ + "/control", SOCK_SEQPACKET)) {
  say(control::Hello::kVerb, {{"protocol", "1"},
                              {"mode", "run"},
                              {"uid", std::to_string(program)},
                              {"gid", std::to_string(program)},
                              {"pid", "4711"},
                              {"state", std::string(to_string(state))}});
}

void FakeInit::say(std::string_view verb, std::map<std::string, std::string, std::less<>> fields) {
  auto sent = control::send(socket_.get(), {std::string(verb), std::move(fields)});
  ASSERT_TRUE(sent) << sent.error().message;
}

control::Message FakeInit::next() {
  pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, 20'000) <= 0) return {"nothing for 20 s", {}};
  auto message = control::receive(socket_.get());
  if (message && message->verb == control::Fresh::kVerb) return next();
  return message ? *message : control::Message{message.error().message, {}};
}

control::Message FakeInit::expect(std::string_view verb) {
  control::Message message = next();
  EXPECT_EQ(message.verb, verb);
  return message;
}

FakeInit::Capture::Capture(const std::string& run_dir)
    : socket_(connect_to(run_dir + "/images/streamer-capture.sock", SOCK_STREAM)) {}

bool FakeInit::Capture::file(std::string_view name, std::size_t size, char fill) {
  // u32 length, img_streamer_request_entry{filename = 1}, one byte that carries the pipe's read end.
  std::string request = {'\x0a', static_cast<char>(name.size())};
  request += name;
  std::uint32_t length = static_cast<std::uint32_t>(request.size());
  std::string packet(reinterpret_cast<char*>(&length), sizeof length);
  packet += request;
  if (::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  Fd reading(ends[0]), writing(ends[1]);
  ::fcntl(writing.get(), F_SETPIPE_SZ, 1 << 20);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  int fd = reading.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) return false;
  reading.reset();
  std::string block(1 << 20, fill);
  while (size > 0) {
    ssize_t n = ::write(writing.get(), block.data(), std::min(size, block.size()));
    if (n <= 0) return false;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace bsp::test
