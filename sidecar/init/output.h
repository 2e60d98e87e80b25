// The program's stdout and stderr: pipes that bsp-init owns and copies verbatim to its own. They end here, so that a
// moved program finds the same pipes in its next pod and no byte is lost or duplicated.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/init/process.h"

namespace bsp::init {

class OutputRelay {
 public:
  explicit OutputRelay(int destination) : destination_(destination) {}

  // Creates a new pipe, owned by the program's user so that it can open /dev/stdout. Replaces the old one.
  Result<void> open(const User& user);
  [[nodiscard]] int write_end() const { return write_end_.get(); }
  void close_write_end() { write_end_.reset(); }  // after the program has inherited it

  // "pipe:[inode]", the name by which criu knows it.
  [[nodiscard]] std::string pipe_name() const;
  // Bytes that the program has written in all its pods, as far as they were read here.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }

  // For poll(): the end to read while the buffer has space, the destination while data is waiting.
  [[nodiscard]] pollfd read_poll() const;
  [[nodiscard]] pollfd write_poll() const;
  void on_readable();
  void on_writable();

  // Reads everything left in the pipe (the program is stopped or dead), however much it is.
  void drain();
  // Writes the buffer, for at most `limit_ms`.
  void flush(int limit_ms);

 private:
  bool read_some();

  int destination_;
  Fd read_end_;
  Fd write_end_;
  std::string buffer_;
  std::uint64_t bytes_ = 0;
};

}  // namespace bsp::init
