// A checkpoint's transfer from pod to pod. The files that criu and bsp-init write into the capture socket at the
// source become one stream of frames; the target turns it back into verified files.
//
// Capture protocol (CRIU's image streamer, criu/img-streamer.c): the writer connects to <dir>/streamer-capture.sock
// and sends for each file a native u32 length and a protobuf img_streamer_request_entry{filename = 1}, then one byte
// with the read end of a pipe attached by SCM_RIGHTS; the file is the pipe's contents. Closing the connection ends
// the set. A killed criu closes its pipes just as a finished one does, so the end of the data proves nothing: only
// CaptureSession::finish, called once bsp-init has reported `dumped`, ends the stream successfully.
//
// The stream. All integers are big-endian.
//   frame  = u8 type, u32 file, u32 sequence, u32 length, payload[length]
//            sequence counts the frames from 0: a lost, duplicated or replayed frame is refused
//   type 1 Begin   payload: "bspckpt1", migration id              first frame, file = 0
//   type 2 Open    payload: file name                            file = 1, 2, …; names are unique
//   type 3 Data    payload: bytes of the file, in order           data of different files may interleave
//   type 4 Close   payload: u64 length, XXH3-128 of the content
//   type 5 End     payload: u32 files, u64 bytes, XXH3-128 over every Open and Close payload in order
//   type 6 Abort   payload: the source's reason
// The receiver accepts a checkpoint only after End, when every file is closed and every length, checksum and count
// agrees. Until then, destroying the Receiver removes its directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::transfer {

// Takes one or more whole or partial frames, in order. Blocks while the network is slower than the dump, which
// throttles criu. An error ends the capture.
using Sink = std::function<Result<void>(std::span<const std::byte>)>;

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;          // content only, without frame headers
  std::uint64_t first_byte_ns = 0;  // CLOCK_REALTIME of the first content byte, 0: none
  std::uint64_t last_byte_ns = 0;
};

// The source's side. One thread calls run(); finish() and abort() may be called from any other.
class CaptureSession {
 public:
  // Listens at <dir>/streamer-capture.sock, replacing a stale one. Any user of the pod may connect (criu runs under
  // the program's uid).
  static Result<std::unique_ptr<CaptureSession>> open(const std::string& dir, const std::string& migration);
  CaptureSession(const CaptureSession&) = delete;
  CaptureSession& operator=(const CaptureSession&) = delete;
  ~CaptureSession();  // removes the socket

  // Relays until finish() was called and every connection and pipe has ended, then sends End. After abort(), or if a
  // writer breaks the protocol, it sends Abort and returns the error. If the sink fails it returns the sink's error
  // and closes the pipes, which makes criu fail.
  Result<Totals> run(const Sink& sink);

  void finish();                       // bsp-init reported `dumped`
  void abort(const std::string& why);  // bsp-init reported `dump-failed`, or the move was abandoned

 private:
  struct Impl;
  explicit CaptureSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The target's side: feed() takes the stream in pieces of any size, as they arrive.
class Receiver {
 public:
  // Creates <dir>/<migration> (readable for the program's uid). kConflict if it exists: a checkpoint is received
  // once; remove the old one first (remove_checkpoint).
  static Result<std::unique_ptr<Receiver>> open(const std::string& dir, const std::string& migration);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver();  // removes the directory unless done()

  // Returns true once End was verified; it accepts nothing afterwards. After an error every call fails. kRefused: the
  // stream is invalid. kNoSpace: the tmpfs is full. kFailed: Abort was received.
  Result<bool> feed(std::span<const std::byte> bytes);
  [[nodiscard]] bool done() const;
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] const std::string& path() const;  // <dir>/<migration>

 private:
  struct Impl;
  explicit Receiver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Removes <dir>/<migration>; no error if it doesn't exist.
Result<void> remove_checkpoint(const std::string& dir, const std::string& migration);

// A migration id is used as a directory name: 1-253 of [a-z0-9.-_A-Z], not starting with '.'.
bool valid_migration(std::string_view id);

}  // namespace bsp::transfer
