// A part of this program in a process of its own.
//
// SimGrid knows one engine per process, keeps its state in globals and ends the process over a platform file that it
// does not like. So it runs in children: this process never has an engine, may have several children at once, and a
// child that ends with a complaint becomes an Error with the complaint in it.
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
  // In the child `serve` reads and writes the channel until it returns; whatever it throws is its complaint.
  static Result<Child> start(const std::function<void(int channel)>& serve);

  Child(Child&&) = default;
  Child& operator=(Child&&) = delete;
  ~Child();

  // kFailed, with what the child said last on stderr, if it has ended.
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> read(std::span<std::byte> bytes);
  Result<std::string> read_all();

 private:
  Child(pid_t pid, Fd channel, Fd words) : pid_(pid), channel_(std::move(channel)), words_(std::move(words)) {}
  std::unexpected<Error> complaint();

  struct Pid {  // moved from: 0
    pid_t value = 0;
    explicit Pid(pid_t v) : value(v) {}
    Pid(Pid&& o) noexcept : value(std::exchange(o.value, 0)) {}
  };
  Pid pid_;
  Fd channel_, words_;
};

// All of it, whatever read(2) and write(2) do at once; false at the end of the channel.
bool read_fully(int fd, std::span<std::byte> bytes);
bool write_fully(int fd, std::span<const std::byte> bytes);

}  // namespace bsp::sim
