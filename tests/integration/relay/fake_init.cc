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

Fd connect_to(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("connecting to " + path + ": " + std::strerror(errno));
  return socket;
}

}  // namespace

FakeInit::FakeInit(std::string run_dir, control::ProgramState state, uid_t program)
    : run_dir_(std::move(run_dir)), socket_(connect_to(run_dir_ + "/control")) {
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

}  // namespace bsp::test
