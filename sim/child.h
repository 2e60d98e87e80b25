// Runs SimGrid in a child process.
//
// SimGrid supports one engine per process, keeps its state in globals, and exits on a bad platform file. So it runs in
// children: this process never has an engine, can have several children at once, and turns a child's failure into an
// Error with the child's message.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::sim {

class Child {
 public:
  // In the child, `serve` reads and writes the channel until it returns; an exception becomes the error message.
  static Result<Child> start(const std::function<void(int channel)>& serve);

  Child(Child&&) = default;
  Child& operator=(Child&&) = delete;
  ~Child();

  // kFailed, with the child's last message on stderr, if the child has exited.
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> read(std::span<std::byte> bytes);
  Result<std::string> read_all();

 private:
  Child(pid_t pid, Fd channel, Fd output) : pid_(pid), channel_(std::move(channel)), output_(std::move(output)) {}
  std::unexpected<Error> failure();

  struct Pid {  // 0 after a move
    pid_t value = 0;
    explicit Pid(pid_t v) : value(v) {}
    Pid(Pid&& o) noexcept : value(std::exchange(o.value, 0)) {}
  };
  Pid pid_;
  Fd channel_, output_;
};

// Repeat read(2) and write(2) until all bytes are transferred; false if the channel is closed.
bool read_fully(int fd, std::span<std::byte> bytes);
bool write_fully(int fd, std::span<const std::byte> bytes);

}  // namespace bsp::sim
