// Offers files over the sidecar's capture socket beside criu's own, in the same protocol
// (sidecar/transfer/stream.h): the archive of carried paths and bsp-init's notes for the restore.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::init {

class CaptureClient {
 public:
  // Connects to <dir>/streamer-capture.sock.
  static Result<CaptureClient> connect(const std::string& dir);

  // A new file; what is written to the returned pipe until it is closed is its content.
  Result<Fd> open_file(std::string_view name);
  // The whole of a small file (less than a pipe holds, 64 KiB).
  Result<void> send_file(std::string_view name, std::string_view content);

 private:
  Fd socket_;
};

}  // namespace bsp::init
