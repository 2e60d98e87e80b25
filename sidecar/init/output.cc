#include "sidecar/init/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr std::size_t kBuffer = 64 * 1024;
// A pipe that poll() reports writable takes this much without blocking (one page, PIPE_BUF). PID 1 must never block
// on a slow log reader, and O_NONBLOCK would also change the container engine's end.
constexpr std::size_t kPiece = 4096;

}  // namespace

Result<void> OutputRelay::open(const User& user) {
  const FsIdentity as_program(user);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("creating the program's output pipe");
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  // Only this end: the program's must block, as a plain pipe does.
  ::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  return {};
}

std::string OutputRelay::pipe_name() const {
  return read_link("/proc/self/fd/" + std::to_string(read_end_.get())).value_or("");
}

pollfd OutputRelay::read_poll() const { return {buffer_.size() < kBuffer ? read_end_.get() : -1, POLLIN, 0}; }

pollfd OutputRelay::write_poll() const { return {buffer_.empty() ? -1 : destination_, POLLOUT, 0}; }

bool OutputRelay::read_some() {
  char piece[16 * 1024];
  const ssize_t n = ::read(read_end_.get(), piece, sizeof(piece));
  if (n > 0) {
    buffer_.append(piece, static_cast<std::size_t>(n));
    bytes_ += static_cast<std::uint64_t>(n);
    return true;
  }
  if (n < 0 && errno == EINTR) return true;
  // End of file: the last writer has closed the pipe.
  if (n == 0) read_end_.reset();
  return false;
}

void OutputRelay::on_readable() {
  if (read_end_) read_some();
}

void OutputRelay::on_writable() {
  if (buffer_.empty()) return;
  const ssize_t n = ::write(destination_, buffer_.data(), std::min(buffer_.size(), kPiece));
  if (n > 0) {
    buffer_.erase(0, static_cast<std::size_t>(n));
  } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
    // The log has no reader any more; that must not stop the program.
    buffer_.clear();
  }
}

void OutputRelay::drain() {
  while (read_end_ && read_some()) {
  }
}

void OutputRelay::flush(int limit_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!buffer_.empty()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd out = write_poll();
    if (left.count() <= 0 || ::poll(&out, 1, static_cast<int>(left.count())) == 0) return;
    if (out.revents != 0) on_writable();
  }
}

}  // namespace bsp::init
