// A checkpoint on its way from pod to pod: the files that criu and bsp-init write into the capture
// socket at the source become one stream of frames; the target turns it back into verified files.
//
// Capture protocol (CRIU's image streamer, criu/img-streamer.c): the writer connects to
// <dir>/streamer-capture.sock and sends for each file a native u32 length and a protobuf
// img_streamer_request_entry{filename = 1}, then one byte with the read end of a pipe attached by
// SCM_RIGHTS; the file is what the pipe holds until its end. Closing the connection ends the set.
// A killed criu closes its pipes just as a finished one does, so the end of the data proves nothing:
// the stream is ended well only by CaptureSession::finish, called once bsp-init has said `dumped`.
//
// The stream. All integers big endian.
//   frame  = u8 type, u32 file, u32 sequence, u32 length, payload[length]
//            sequence counts the frames from 0: a lost, doubled or replayed frame is refused
//   type 1 Begin   payload: "bspckpt1", migration id              first frame, file = 0
//   type 2 Open    payload: file name                            file = 1, 2, …; names are unique
//   type 3 Data    payload: bytes of the file, in order           chunks of different files may mix
//   type 4 Close   payload: u64 length, XXH3-128 of the content
//   type 5 End     payload: u32 files, u64 bytes, XXH3-128 over every Open and Close payload in order
//   type 6 Abort   payload: why the source gave up
// The receiver believes a checkpoint only after End, when every file is closed and every length,
// checksum and count agrees; until then its directory is removed with the Receiver.
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

// Takes one or more whole or partial frames, in order; blocks while the network is slower than the
// dump (that is what holds criu back). An error ends the capture.
using Sink = std::function<Result<void>(std::span<const std::byte>)>;

struct Totals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;          // content, frames not counted
  std::uint64_t first_byte_ns = 0;  // CLOCK_REALTIME of the first content byte, 0: none came
  std::uint64_t last_byte_ns = 0;
};

// The source's side. One thread calls run(); finish() and abort() may come from any other.
class CaptureSession {
 public:
  // Listens at <dir>/streamer-capture.sock, replacing a stale one; any user of the pod may connect
  // (criu runs under the program's uid).
  static Result<std::unique_ptr<CaptureSession>> open(const std::string& dir, const std::string& migration);
  CaptureSession(const CaptureSession&) = delete;
  CaptureSession& operator=(const CaptureSession&) = delete;
  ~CaptureSession();  // removes the socket

  // Relays until finish() was called and every connection and pipe is at its end, then sends End.
  // After abort(), or if a writer breaks the protocol, it sends Abort and returns the error; if the
  // sink fails it returns the sink's error and closes the pipes, which makes criu fail.
  Result<Totals> run(const Sink& sink);

  void finish();                       // bsp-init said `dumped`
  void abort(const std::string& why);  // bsp-init said `dump-failed`, or the move is given up

 private:
  struct Impl;
  explicit CaptureSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The target's side: feed() takes the stream in pieces of any size, as they come off the network.
class Receiver {
 public:
  // Makes <dir>/<migration> (readable for the program's uid). kConflict if it is there already: a
  // checkpoint is received once; discard the old one first (remove_checkpoint).
  static Result<std::unique_ptr<Receiver>> open(const std::string& dir, const std::string& migration);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver();  // removes the directory unless done()

  // true once End was verified; then not one byte more is accepted. After an error every call fails.
  // kRefused: the stream is not what it should be. kNoSpace: the tmpfs is full. kFailed: Abort came.
  Result<bool> feed(std::span<const std::byte> bytes);
  [[nodiscard]] bool done() const;
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] const std::string& path() const;  // <dir>/<migration>

 private:
  struct Impl;
  explicit Receiver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Removes <dir>/<migration>; no error if it is not there.
Result<void> remove_checkpoint(const std::string& dir, const std::string& migration);

// A migration id is used as a directory name: 1-253 of [a-z0-9.-_A-Z], not starting with '.'.
bool valid_migration(std::string_view id);

}  // namespace bsp::transfer
