// A run of a program that carries bytes between this process and a storage. While nothing is stored there is none, so it takes
// no memory; one that hangs is killed, and nothing of it stays.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/storage/storage.h"

namespace bsp::storage {

class Client {
 public:
  struct Limits {
    std::chrono::milliseconds patience;  // a call fails with kTimeout after so long without progress
    GivenUp given_up = nullptr;          // then it fails with kUnavailable
  };

  // argv[0] is the path. The program's standard input and output are ours; its environment is `environment` alone. What it runs
  // with, such as priority, is this thread's.
  static Result<Client> start(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                              Limits limits);
  Client(Client&& other) noexcept = default;
  Client& operator=(Client&&) = delete;
  ~Client();  // kills it

  // kFailed: it no longer reads.
  Result<void> write(std::span<const std::byte> bytes);
  // 0: it has closed its output.
  Result<std::size_t> read(std::span<std::byte> into);
  // Ends its input, and waits for its end: the exit status, 128 + signal if one killed it.
  Result<int> finish();
  // Of one that has failed by itself, so that it has said all; false: it goes on.
  bool await_end();
  // Asks it to end, so that it takes back what it has begun, and kills it if it doesn't at once.
  void stop();
  // The end of what it has written to its standard error.
  [[nodiscard]] std::string said() const;
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const;

 private:
  Client(pid_t pid, Fd process, Fd link, Fd errors, Limits limits)
      : pid_(pid), process_(std::move(process)), link_(std::move(link)), errors_(std::move(errors)), limits_(limits) {}
  Result<void> wait(int fd, short events, std::chrono::steady_clock::time_point& since) const;
  bool ended_within(std::chrono::milliseconds most);
  void reap();

  pid_t pid_;
  Fd process_;  // its pidfd, until it is reaped
  Fd link_;     // a socket: its standard input and output
  Fd errors_;
  Limits limits_;
  int status_ = 0;
};

}  // namespace bsp::storage
