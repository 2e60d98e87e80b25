// The source's end: CRIU's image-streamer protocol in, frames out. See stream.h.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/core/fault.h"
#include "base/core/fd.h"
#include "base/core/realtime.h"
#include "sidecar/transfer/frames.h"
#include "sidecar/transfer/passed_fd.h"
#include "sidecar/transfer/stream.h"

namespace bsp::transfer {
namespace {

constexpr std::string_view kSocketName = "streamer-capture.sock";
constexpr int kPipeBytes = 1 << 20;  // the most that an unprivileged process may set

// A connected criu or bsp-init, between two file requests.
struct Writer {
  Fd socket;
  std::vector<std::byte> request;  // u32 length, protobuf; then the byte that carries the pipe
};

struct OpenFile {
  Fd pipe;
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;
  Hasher hash;
};

// The only field of img_streamer_request_entry: tag 0x0a, varint length, name.
Result<std::string> file_name_of(std::span<const std::byte> protobuf) {
  const auto bad = [] { return fail(ErrorCode::kRefused, "capture socket: not a file request"); };
  if (protobuf.size() < 2 || protobuf[0] != std::byte{0x0a}) return bad();
  std::size_t length = 0;
  std::size_t at = 1;
  for (int shift = 0;; shift += 7) {
    if (at >= protobuf.size() || shift > 14) return bad();
    const auto byte = static_cast<unsigned>(protobuf[at++]);
    length |= (byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) break;
  }
  if (length != protobuf.size() - at) return bad();
  std::string name(reinterpret_cast<const char*>(protobuf.data()) + at, length);
  if (name.empty() || name.size() > 255 || name[0] == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    return fail(ErrorCode::kRefused, "capture socket: unusable file name '" + name + "'");
  }
  return name;
}

}  // namespace

struct CaptureSession::Impl {
  std::string migration;
  std::string socket_path;
  Fd listener;
  Fd wake;
  std::atomic<bool> finished = false;
  std::mutex mutex;
  std::string abort_reason;  // guarded by mutex
  std::atomic<bool> aborted = false;

  // Used only by run().
  const Sink* sink = nullptr;
  std::uint32_t sequence = 0;
  std::uint32_t next_file = 1;
  std::vector<Writer> writers;
  std::vector<OpenFile> files;
  std::set<std::string> names;
  Hasher whole;
  Totals totals;
  std::vector<std::byte> buffer = std::vector<std::byte>(kHeaderBytes + kMaxData);

  // Sends buffer[0, kHeaderBytes + length) after filling in the header.
  Result<void> emit(FrameType type, std::uint32_t file, std::size_t length) {
    put_header(buffer.data(), {type, file, sequence++, static_cast<std::uint32_t>(length)});
    return (*sink)(std::span(buffer).first(kHeaderBytes + length));
  }

  Result<void> emit_text(FrameType type, std::uint32_t file, std::string_view text) {
    text = text.substr(0, kMaxText);
    std::memcpy(buffer.data() + kHeaderBytes, text.data(), text.size());
    if (type == FrameType::kOpen) whole.add(std::as_bytes(std::span(text)));
    return emit(type, file, text.size());
  }

  Result<void> open_file(std::string name, Fd pipe) {
    if (!names.insert(name).second) {
      return fail(ErrorCode::kRefused, "capture socket: file '" + name + "' was sent twice");
    }
    OpenFile file{.pipe = std::move(pipe), .id = next_file++, .bytes = 0, .hash = {}};
    // Larger pipes mean fewer wake-ups; failure only costs speed.
    ::fcntl(file.pipe.get(), F_SETPIPE_SZ, kPipeBytes);
    BSP_CHECK_OK(emit_text(FrameType::kOpen, file.id, name));
    files.push_back(std::move(file));
    return {};
  }

  // One read from one pipe. false: end of file, the file is closed.
  Result<bool> relay(OpenFile& file) {
    const ssize_t n = ::read(file.pipe.get(), buffer.data() + kHeaderBytes, kMaxData);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0) return fail_errno("reading a checkpoint file from criu");
    if (n > 0) {
      const auto bytes = std::span(buffer).subspan(kHeaderBytes, static_cast<std::size_t>(n));
      if (totals.first_byte_ns == 0) totals.first_byte_ns = realtime_ns();
      file.hash.add(bytes);
      file.bytes += bytes.size();
      BSP_CHECK_OK(emit(FrameType::kData, file.id, bytes.size()));
      return true;
    }
    std::byte* payload = buffer.data() + kHeaderBytes;
    put_int<std::uint64_t>(payload, file.bytes);
    const Checksum checksum = file.hash.value();
    std::memcpy(payload + 8, checksum.data(), checksum.size());
    whole.add({payload, 8 + kChecksumBytes});
    totals.files += 1;
    totals.bytes += file.bytes;
    BSP_CHECK_OK(emit(FrameType::kClose, file.id, 8 + kChecksumBytes));
    return false;
  }

  // Reads from one writer, never more than one request, so that the byte carrying the descriptor is read alone.
  // false: end of file.
  Result<bool> serve(Writer& writer) {
    std::size_t want = 4;
    if (writer.request.size() >= 4) {
      std::uint32_t length = 0;
      std::memcpy(&length, writer.request.data(), 4);  // native order, as CRIU writes it
      if (length > kMaxText) return fail(ErrorCode::kRefused, "capture socket: request too long");
      want = 4 + length;
      if (writer.request.size() == want) return take_pipe(writer);
    }
    std::byte piece[kMaxText];
    const ssize_t n = ::recv(writer.socket.get(), piece, want - writer.request.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0 && errno != ECONNRESET) return fail_errno("reading the capture socket");
    if (n <= 0) {
      if (writer.request.empty()) return false;
      return fail(ErrorCode::kRefused, "capture socket closed in the middle of a request");
    }
    writer.request.insert(writer.request.end(), piece, piece + n);
    return true;
  }

  Result<bool> take_pipe(Writer& writer) {
    auto pipe = take_fd(writer.socket.get());
    if (!pipe) return std::unexpected(pipe.error().in("capture socket: the pipe of a file request"));
    if (!*pipe) return true;
    BSP_TRY(std::string name, file_name_of(std::span(writer.request).subspan(4)));
    writer.request.clear();
    BSP_CHECK_OK(open_file(std::move(name), std::move(**pipe)));
    return true;
  }

  Result<void> accept_all() {
    for (;;) {
      const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        writers.push_back({.socket = Fd(fd), .request = {}});
        continue;
      }
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return {};
      return fail_errno("accepting at the capture socket");
    }
  }

  // One round of poll and everything that is ready.
  Result<void> step() {
    std::vector<pollfd> polled;
    polled.push_back({wake.get(), POLLIN, 0});
    polled.push_back({listener.get(), POLLIN, 0});
    for (const Writer& w : writers) polled.push_back({w.socket.get(), POLLIN, 0});
    for (const OpenFile& f : files) polled.push_back({f.pipe.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return fail_errno("poll");
    if (polled[0].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = ::read(wake.get(), &count, sizeof(count));
    }
    // Pipes first, from the back, so that the remaining indices stay valid.
    const std::size_t first_writer = 2;
    const std::size_t first_file = first_writer + writers.size();
    for (std::size_t i = files.size(); i-- > 0;) {
      if (polled[first_file + i].revents == 0) continue;
      BSP_TRY(const bool more, relay(files[i]));
      if (!more) files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t i = first_file - first_writer; i-- > 0;) {
      if (polled[first_writer + i].revents == 0) continue;
      BSP_TRY(const bool more, serve(writers[i]));
      if (!more) writers.erase(writers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return accept_all();
  }

  Result<Totals> relay_all() {
    BSP_CHECK_OK(emit_text(FrameType::kBegin, 0, std::string(kMagic) + migration));
    for (;;) {
      if (aborted) {
        const std::lock_guard lock(mutex);
        return fail(ErrorCode::kFailed, abort_reason);
      }
      // `finished` is read before the last accept: every writer of a file had connected before bsp-init reported
      // `dumped`, so nothing can be missed.
      const bool last = finished;
      if (last) BSP_CHECK_OK(accept_all());
      if (last && writers.empty() && files.empty()) break;
      BSP_CHECK_OK(step());
    }
    if (totals.files == 0) return fail(ErrorCode::kFailed, "the dump wrote no files");
    std::byte* payload = buffer.data() + kHeaderBytes;
    put_int<std::uint32_t>(payload, static_cast<std::uint32_t>(totals.files));
    put_int<std::uint64_t>(payload + 4, totals.bytes);
    const Checksum checksum = whole.value();
    std::memcpy(payload + 12, checksum.data(), checksum.size());
    fault_point("transfer.end");
    BSP_CHECK_OK(emit(FrameType::kEnd, 0, 12 + kChecksumBytes));
    totals.last_byte_ns = realtime_ns();
    return totals;
  }
};

CaptureSession::CaptureSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CaptureSession::~CaptureSession() {
  if (impl_) ::unlink(impl_->socket_path.c_str());
}

Result<std::unique_ptr<CaptureSession>> CaptureSession::open(const std::string& dir, const std::string& migration) {
  if (!valid_migration(migration)) {
    return fail(ErrorCode::kInvalid, "'" + migration + "' is not a valid migration name");
  }
  auto impl = std::make_unique<Impl>();
  impl->migration = migration;
  impl->socket_path = dir + "/" + std::string(kSocketName);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (impl->socket_path.size() >= sizeof(address.sun_path)) {
    return fail(ErrorCode::kInvalid, "path too long for a socket: " + impl->socket_path);
  }
  std::memcpy(address.sun_path, impl->socket_path.data(), impl->socket_path.size());
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("making " + dir);
  ::unlink(impl->socket_path.c_str());
  impl->listener = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  impl->wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!impl->listener || !impl->wake) return fail_errno("creating the capture socket");
  if (::bind(impl->listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(impl->socket_path.c_str(), 0666) != 0 || ::listen(impl->listener.get(), 8) != 0) {
    return fail_errno("opening the capture socket " + impl->socket_path);
  }
  return std::unique_ptr<CaptureSession>(new CaptureSession(std::move(impl)));
}

Result<Totals> CaptureSession::run(const Sink& sink) {
  Impl& s = *impl_;
  s.sink = &sink;
  Sink guarded = sink;
  bool sink_failed = false;
  guarded = [&](std::span<const std::byte> bytes) -> Result<void> {
    auto result = sink(bytes);
    sink_failed = sink_failed || !result;
    return result;
  };
  s.sink = &guarded;
  auto result = s.relay_all();
  // Closing these makes a criu that is still dumping, or about to connect, fail.
  s.listener.reset();
  s.files.clear();
  s.writers.clear();
  if (!result && !sink_failed) {
    // The peer gets the reason; if that can't be sent, the missing End is enough.
    (void)s.emit_text(FrameType::kAbort, 0, result.error().message);
  }
  s.sink = nullptr;
  return result;
}

void CaptureSession::finish() {
  impl_->finished = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(impl_->wake.get(), &one, sizeof(one));
}

void CaptureSession::abort(const std::string& why) {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->aborted) return;
    impl_->abort_reason = why.empty() ? "the dump was abandoned" : why;
    impl_->aborted = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(impl_->wake.get(), &one, sizeof(one));
}

}  // namespace bsp::transfer
