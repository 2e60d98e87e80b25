// Sends files over the sidecar's capture socket beside criu's own, by the same protocol (stream.h):
// the archive of carried paths and bsp-init's state for the restore.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::transfer {

class CaptureClient {
 public:
  // Connects to <dir>/streamer-capture.sock.
  static Result<CaptureClient> connect(const std::string& dir);

  // Starts a new file; its content is what is written to the returned pipe until it is closed.
  Result<Fd> open_file(std::string_view name);
  // Sends a complete small file (less than a pipe's capacity, 64 KiB).
  Result<void> send_file(std::string_view name, std::string_view content);

 private:
  Fd socket_;
};

}  // namespace bsp::transfer
