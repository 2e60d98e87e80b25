// A file that is there and, while this exists, can't be opened without waiting: another holds a lease on it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/core/fd.h"

namespace bsp::sidecar {

class Unopenable {
 public:
  explicit Unopenable(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    ::signal(SIGIO, SIG_IGN);  // asks for the lease back
    EXPECT_EQ(::fcntl(file_.get(), F_SETLEASE, F_WRLCK), 0) << path << ": " << std::strerror(errno);
  }

 private:
  Fd file_;
};

}  // namespace bsp::sidecar
