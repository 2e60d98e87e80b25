// The target's end: frames in, verified files out. See stream.h.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/core/fault.h"
#include "base/core/fd.h"
#include "base/core/realtime.h"
#include "sidecar/transfer/frames.h"
#include "sidecar/transfer/stream.h"

namespace bsp::transfer {
namespace {

// A checkpoint is received beside its final name, so that a directory with the final name is always a complete,
// verified checkpoint, even after this process was killed.
std::string part_path(const std::string& path) { return path + ".part"; }

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorCode::kRefused, "checkpoint stream refused: " + std::string(why));
}

struct IncomingFile {
  Fd fd;
  std::string name;
  std::uint64_t bytes = 0;
  Hasher hash;
};

}  // namespace

bool valid_migration(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !id.empty() && id.size() <= 240 && id[0] != '.' && std::ranges::all_of(id, allowed);
}

Result<void> remove_checkpoint(const std::string& dir, const std::string& migration) {
  if (!valid_migration(migration)) {
    return fail(ErrorCode::kInvalid, "'" + migration + "' is not a valid migration name");
  }
  const std::string path = dir + "/" + migration;
  for (const std::string& stale : {path, part_path(path)}) {
    std::error_code error;
    std::filesystem::remove_all(stale, error);
    if (error) return fail_errno("removing " + stale, error.value());
  }
  return {};
}

struct Receiver::Impl {
  std::string dir;
  std::string migration;
  std::string path;
  std::uint32_t sequence = 0;
  std::vector<std::byte> pending;  // an incomplete header, or a text frame with its header
  FrameHeader header;              // of the frame being read, valid if in_frame
  bool in_frame = false;
  std::uint32_t left = 0;  // payload bytes still to come
  bool begun = false;
  bool done = false;
  std::optional<Error> error;
  std::map<std::uint32_t, IncomingFile> files;
  std::set<std::string> names;
  std::uint32_t next_file = 1;
  Hasher whole;
  Totals totals;

  Result<void> start_frame() {
    header = get_header(pending.data());
    pending.clear();
    if (header.sequence != sequence) return refuse("a frame is missing or duplicated");
    ++sequence;
    const bool known = header.type >= FrameType::kBegin && header.type <= FrameType::kAbort;
    if (!known) return refuse("unknown frame type");
    if (begun == (header.type == FrameType::kBegin)) {
      return refuse(begun ? "a second Begin frame" : "the Begin frame is missing");
    }
    const bool of_a_file =
        header.type == FrameType::kOpen || header.type == FrameType::kData || header.type == FrameType::kClose;
    if (of_a_file == (header.file == 0)) return refuse("a frame has the wrong file number");
    if (header.length > (header.type == FrameType::kData ? kMaxData : kMaxText)) {
      return refuse("a frame is too long");
    }
    if (header.type == FrameType::kData && !files.contains(header.file)) {
      return refuse("data for a file that is not open");
    }
    in_frame = true;
    left = header.length;
    return {};
  }

  Result<void> write_data(std::span<const std::byte> bytes) {
    IncomingFile& file = files.at(header.file);
    if (totals.first_byte_ns == 0) totals.first_byte_ns = realtime_ns();
    file.hash.add(bytes);
    file.bytes += bytes.size();
    while (!bytes.empty()) {
      if (fault_fails("transfer.write")) return fail_errno("writing " + file.name, ENOSPC);
      const ssize_t n = ::write(file.fd.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("writing " + part_path(path) + "/" + file.name);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<void> open_file(std::string_view text) {
    std::string name(text);
    if (name.empty() || name.size() > 255 || name[0] == '.' ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return refuse("unusable file name");
    }
    if (header.file != next_file++) return refuse("file numbers are not consecutive");
    if (!names.insert(name).second) return refuse("file '" + name + "' is duplicated");
    whole.add(std::as_bytes(std::span(text)));
    const std::string file_path = part_path(path) + "/" + name;
    Fd fd(::open(file_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return fail_errno("making " + file_path);
    ::fchmod(fd.get(), 0644);  // so that the program's uid can read it whatever the umask
    files.emplace(header.file, IncomingFile{.fd = std::move(fd), .name = name, .bytes = 0, .hash = {}});
    return {};
  }

  Result<void> close_file(std::span<const std::byte> payload) {
    const auto it = files.find(header.file);
    if (it == files.end()) return refuse("end of a file that is not open");
    if (payload.size() != 8 + kChecksumBytes) return refuse("malformed end of file");
    const IncomingFile& file = it->second;
    if (get_int<std::uint64_t>(payload.data()) != file.bytes) {
      return refuse("'" + file.name + "' has the wrong length");
    }
    if (!std::ranges::equal(payload.subspan(8), file.hash.value())) {
      return refuse("'" + file.name + "' has the wrong checksum");
    }
    whole.add(payload);
    totals.files += 1;
    totals.bytes += file.bytes;
    files.erase(it);
    return {};
  }

  Result<void> end(std::span<const std::byte> payload) {
    if (payload.size() != 12 + kChecksumBytes) return refuse("malformed end");
    if (!files.empty()) return refuse("End while a file is open");
    if (get_int<std::uint32_t>(payload.data()) != totals.files ||
        get_int<std::uint64_t>(payload.data() + 4) != totals.bytes || totals.files == 0 ||
        !std::ranges::equal(payload.subspan(12), whole.value())) {
      return refuse("its totals disagree with the received data");
    }
    fault_point("transfer.verified");
    if (::rename(part_path(path).c_str(), path.c_str()) != 0) return fail_errno("naming " + path);
    totals.last_byte_ns = realtime_ns();
    done = true;
    return {};
  }

  Result<void> finish_frame() {
    in_frame = false;
    const std::span<const std::byte> payload = pending;
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    switch (header.type) {
      case FrameType::kBegin:
        if (!text.starts_with(kMagic)) return refuse("it is not a checkpoint stream");
        if (text.substr(kMagic.size()) != migration) {
          return refuse("it belongs to migration '" + std::string(text.substr(kMagic.size())) + "', not to '" +
                        migration + "'");
        }
        begun = true;
        return {};
      case FrameType::kOpen:
        return open_file(text);
      case FrameType::kData:
        return {};
      case FrameType::kClose:
        return close_file(payload);
      case FrameType::kEnd:
        return end(payload);
      case FrameType::kAbort:
        return fail(ErrorCode::kFailed, "the source aborted: " + std::string(text));
    }
    return refuse("unknown frame type");
  }

  Result<void> take(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (done) return refuse("data after End");
      if (!in_frame) {
        const std::size_t n = std::min(bytes.size(), kHeaderBytes - pending.size());
        pending.insert(pending.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
        bytes = bytes.subspan(n);
        if (pending.size() < kHeaderBytes) return {};
        BSP_CHECK_OK(start_frame());
      }
      const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), left));
      if (header.type == FrameType::kData) {
        BSP_CHECK_OK(write_data(piece));
      } else {
        pending.insert(pending.end(), piece.begin(), piece.end());
      }
      left -= static_cast<std::uint32_t>(piece.size());
      bytes = bytes.subspan(piece.size());
      if (left > 0) return {};
      BSP_CHECK_OK(finish_frame());
      pending.clear();
    }
    return {};
  }
};

Receiver::Receiver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Receiver::~Receiver() {
  if (!impl_ || impl_->done) return;
  impl_->files.clear();
  std::error_code ignored;
  std::filesystem::remove_all(part_path(impl_->path), ignored);
}

Result<std::unique_ptr<Receiver>> Receiver::open(const std::string& dir, const std::string& migration) {
  if (!valid_migration(migration)) {
    return fail(ErrorCode::kInvalid, "'" + migration + "' is not a valid migration name");
  }
  auto impl = std::make_unique<Impl>();
  impl->dir = dir;
  impl->migration = migration;
  impl->path = dir + "/" + migration;
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno("making " + dir);
  if (::access(impl->path.c_str(), F_OK) == 0) {
    return fail(ErrorCode::kConflict, "checkpoint " + migration + " was received already");
  }
  // Left by a killed receiver: it can't be resumed, so it is removed.
  const std::string part = part_path(impl->path);
  std::error_code error;
  std::filesystem::remove_all(part, error);
  if (error) return fail_errno("removing " + part, error.value());
  if (::mkdir(part.c_str(), 0755) != 0) return fail_errno("making " + part);
  ::chmod(part.c_str(), 0755);
  return std::unique_ptr<Receiver>(new Receiver(std::move(impl)));
}

Result<bool> Receiver::feed(std::span<const std::byte> bytes) {
  Impl& s = *impl_;
  if (s.error) return std::unexpected(*s.error);
  if (auto taken = s.take(bytes); !taken) {
    s.error = taken.error();
    return std::unexpected(taken.error());
  }
  return s.done;
}

bool Receiver::done() const { return impl_->done && !impl_->error; }
Totals Receiver::totals() const { return impl_->totals; }
const std::string& Receiver::path() const { return impl_->path; }

}  // namespace bsp::transfer
