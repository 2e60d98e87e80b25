#include "sim/child.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <format>
#include <sstream>

namespace bsp::sim {
namespace {

// The child's error message: the first line that SimGrid marks as critical, otherwise the last line. Without SimGrid's
// prefix "[0.000000] [ker_platform/CRITICAL] file.cpp:123: ".
std::string error_message_in(const std::string& output) {
  std::string last, critical;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    last = line;
    if (critical.empty() && line.find("/CRITICAL]") != std::string::npos) critical = line;
  }
  std::string text = critical.empty() ? last : critical;
  if (const std::size_t mark = text.rfind("/CRITICAL] "); mark != std::string::npos) text.erase(0, mark + 11);
  return text;
}

}  // namespace

bool read_fully(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool write_fully(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Result<Child> Child::start(const std::function<void(int channel)>& serve) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("socketpair for the simulation");
  Fd ours(ends[0]), its(ends[1]);
  Fd output(::memfd_create("bsp-simulate", MFD_CLOEXEC));
  if (!output) return fail_errno("memfd for the simulation");
  std::fflush(nullptr);  // otherwise both processes would write what is buffered
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork for the simulation");
  if (pid > 0) return Child(pid, std::move(ours), std::move(output));

  ours.reset();
  ::dup2(output.get(), STDOUT_FILENO);
  ::dup2(output.get(), STDERR_FILENO);
  int status = 0;
  try {
    serve(its.get());
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "\n%s\n", thrown.what());
    status = 1;
  }
  std::fflush(nullptr);
  ::_exit(status);  // skips this program's destructors and SimGrid's
}

Child::~Child() {
  if (pid_.value == 0) return;
  ::shutdown(channel_.get(), SHUT_RDWR);  // close() isn't enough: children started later have copies
  int status = 0;
  while (::waitpid(pid_.value, &status, 0) < 0 && errno == EINTR) {
  }
}

Result<void> Child::write(std::span<const std::byte> bytes) {
  if (write_fully(channel_.get(), bytes)) return {};
  return failure();
}

Result<void> Child::read(std::span<std::byte> bytes) {
  if (read_fully(channel_.get(), bytes)) return {};
  return failure();
}

Result<std::string> Child::read_all() {
  std::uint64_t size = 0;
  BSP_CHECK_OK(read(std::as_writable_bytes(std::span(&size, 1))));
  std::string text(size, '\0');
  BSP_CHECK_OK(read(std::as_writable_bytes(std::span(text))));
  return text;
}

std::unexpected<Error> Child::failure() {
  int status = 0;
  if (pid_.value != 0)
    while (::waitpid(pid_.value, &status, 0) < 0 && errno == EINTR) {
    }
  pid_.value = 0;
  std::string message;
  std::array<char, 4096> buffer{};
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(output_.get(), buffer.data(), buffer.size(), at);
    if (n <= 0) break;
    message.append(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
  message = error_message_in(message);
  if (message.empty()) message = std::format("it exited with wait status {}", status);
  return fail(ErrorCode::kFailed, "SimGrid: " + message);
}

}  // namespace bsp::sim
