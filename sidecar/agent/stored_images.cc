#include "sidecar/agent/stored_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "base/core/realtime.h"

namespace bsp::sidecar {
namespace {

constexpr double kStoringShare = 0.25;  // of a core
// A directory of a network file system may be listed late on another node.
constexpr std::chrono::seconds kListedLate{20};
constexpr std::chrono::milliseconds kListAgain{500};

std::unexpected<Error> was_given_up() { return fail(ErrorCode::kUnavailable, "it was given up"); }

// Sleeps so that the thread's CPU time stays within its share.
class Pace {
 public:
  Pace() : cpu_(cpu_time()) {
    // Where the cores are busy, the program goes first.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
  }
  // `others`: CPU time that others have used for this thread.
  void keep(std::chrono::nanoseconds others) {
    const auto now = cpu_time() + others;
    const auto used = now - cpu_;
    cpu_ = now;
    std::this_thread::sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(used * (1 / kStoringShare - 1)));
  }

 private:
  static std::chrono::nanoseconds cpu_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  std::chrono::nanoseconds cpu_;
};

Result<std::unique_ptr<storage::StoredImage>> open_listed(const ImageKeys& image, const std::atomic<bool>& given_up) {
  const auto limit = std::chrono::steady_clock::now() + kListedLate;
  for (;;) {
    auto file = image.storage->open(image.name, &given_up);
    if (file || file.error().code != ErrorCode::kNotFound || std::chrono::steady_clock::now() > limit) return file;
    if (given_up) return was_given_up();
    std::this_thread::sleep_for(kListAgain);
  }
}

}  // namespace

Result<Fd> memory_file(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) file = Fd(::memfd_create("bsp-image", MFD_CLOEXEC));  // not every file system has O_TMPFILE
  if (!file) return fail_errno("making a file in " + directory);
  return file;
}

Result<storage::Sealed> store_image(const ImageKeys& image, int file, std::uint64_t bytes,
                                    const std::atomic<bool>& given_up) {
  Pace pace;
  BSP_TRY(const auto stored, image.storage->create(image.name, storage::file_bytes(bytes), &given_up));
  BSP_TRY(auto sealer, storage::Sealer::begin(image.key, image.name, bytes,
                                              [&](std::span<const std::byte> piece) { return stored->write(piece); }));
  std::vector<std::byte> buffer(storage::kChunk);
  for (std::uint64_t at = 0; at < bytes;) {
    if (given_up) return was_given_up();
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), bytes - at));
    const ssize_t n = ::pread(file, buffer.data(), most, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail_errno("reading an image from memory", n < 0 ? errno : EIO);
    BSP_CHECK_OK(sealer.add(std::span(buffer).first(static_cast<std::size_t>(n))));
    ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at), n);
    at += static_cast<std::uint64_t>(n);
    pace.keep(stored->cpu_time());
  }
  BSP_TRY(const storage::Sealed sealed, sealer.finish());
  if (given_up) return was_given_up();
  BSP_CHECK_OK(stored->publish());
  return sealed;
}

Result<StreamEnd> load_image(const ImageKeys& image, const std::string& digest, transfer::Receiver& receiver,
                             const std::atomic<bool>& given_up) {
  const std::uint64_t begun = realtime_ns();
  BSP_TRY(const auto file, open_listed(image, given_up));
  bool whole = false;
  storage::Opener opener(image.key, image.name, digest, [&](std::span<const std::byte> plain) -> Result<void> {
    BSP_TRY(whole, receiver.feed(plain));
    return {};
  });
  std::vector<std::byte> buffer(storage::kChunk);
  for (;;) {
    if (given_up) return was_given_up();
    BSP_TRY(const std::size_t n, file->read(buffer));
    if (n == 0) break;
    BSP_CHECK_OK(opener.feed(std::span(buffer).first(n)));
  }
  BSP_CHECK_OK(opener.finish());
  if (!whole) return fail(ErrorCode::kRefused, "the stored image is damaged: its content ends too early");
  const transfer::Totals totals = receiver.totals();
  return StreamEnd{totals.files, totals.bytes, realtime_ns() - begun};
}

bool is_damage(const Error& error) {
  return error.code == ErrorCode::kRefused || error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid;
}

}  // namespace bsp::sidecar
