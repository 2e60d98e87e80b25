#include "sidecar/agent/stored_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/read_file.h"
#include "base/core/realtime.h"
#include "crds/names.h"
#include "crds/wire.h"
#include "sidecar/transfer/frames.h"

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

Result<std::unique_ptr<storage::StoredImage>> open_listed(const ImageKeys& image, const storage::ImageName& name,
                                                          const std::atomic<bool>& given_up) {
  const auto limit = std::chrono::steady_clock::now() + kListedLate;
  for (;;) {
    auto file = name == image.name ? image.storage->open(name, &given_up) : image.storage->open_base(name, &given_up);
    if (file || file.error().code != ErrorCode::kNotFound || std::chrono::steady_clock::now() > limit) return file;
    if (given_up) return was_given_up();
    std::this_thread::sleep_for(kListAgain);
  }
}

// `into` from `at` of the file.
Result<void> read_memory(int file, std::uint64_t at, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t n = ::pread(file, into.data(), into.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail_errno("reading an image from memory", n < 0 ? errno : EIO);
    into = into.subspan(static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return {};
}

void free_memory(int file, std::uint64_t begin, std::uint64_t end) {
  ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
              static_cast<off_t>(end - begin));
}

// In the set that the operator has promised to keep, of the same attempt, so that this sidecar has stored it.
bool can_build_on(const storage::Base& base, const ImageKeys& image) {
  storage::ImageName of_base = image.name;
  of_base.set = base.name.set;
  of_base.epoch = base.name.epoch;
  return base.name == of_base && base.name.set < image.name.set && base.name.set == image.base &&
         base.name.set == wire::base_of(image.name.set);
}

// What is known of an image's blocks takes some 20 MiB while two are compared, so ranks of one pod do it one after another.
std::counting_semaphore<1> comparing{1};
class Comparing {
 public:
  static Result<Comparing> begin(const std::atomic<bool>& given_up) {
    while (!comparing.try_acquire_for(std::chrono::milliseconds(100)))
      if (given_up) return was_given_up();
    return Comparing();
  }
  Comparing(Comparing&& other) noexcept : holds_(std::exchange(other.holds_, false)) {}
  Comparing& operator=(Comparing&&) = delete;
  ~Comparing() {
    if (holds_) comparing.release();
  }

 private:
  Comparing() = default;
  bool holds_ = true;
};

// Somebody may have removed it from the storage, and a set must be complete when it counts.
bool holds(const ImageKeys& image, const storage::ImageName& name, const std::atomic<bool>& given_up) {
  const auto file = image.storage->open(name, &given_up);
  std::byte first{};
  const auto n = file ? (*file)->read(std::span(&first, 1)) : Result<std::size_t>(0);
  return n && *n == 1;
}

// The blocks of the dumped files in the stream of frames: each begins at a multiple of its size in its file, for frames end anywhere.
Result<std::vector<storage::Block>> find_blocks(int file, std::uint64_t bytes, std::size_t block, Pace& pace,
                                                const std::atomic<bool>& given_up) {
  std::vector<storage::Block> blocks;
  blocks.reserve(static_cast<std::size_t>(bytes / block));
  std::map<std::uint32_t, std::uint64_t> places;  // of each file's next byte in it
  std::vector<std::byte> frame(transfer::kMaxData);
  for (std::uint64_t at = 0; at < bytes;) {
    if (given_up) return was_given_up();
    std::array<std::byte, transfer::kHeaderBytes> head{};
    BSP_CHECK_OK(read_memory(file, at, head));
    const transfer::FrameHeader header = transfer::get_header(head.data());
    if (header.length > frame.size())
      return fail(ErrorCode::kFailed, "an image in memory has a frame that is too long");
    at += head.size();
    if (header.type == transfer::FrameType::kData) {
      const auto data = std::span(frame).first(header.length);
      BSP_CHECK_OK(read_memory(file, at, data));
      std::uint64_t& place = places[header.file];
      for (std::uint64_t skip = (block - place % block) % block; skip + block <= data.size(); skip += block)
        blocks.push_back({at + skip, storage::digest_of(data.subspan(static_cast<std::size_t>(skip), block))});
      place += data.size();
      pace.keep({});
    }
    at += header.length;
  }
  return blocks;
}

}  // namespace

Result<Fd> memory_file(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) file = Fd(::memfd_create("bsp-image", MFD_CLOEXEC));  // not every file system has O_TMPFILE
  if (!file) return fail_errno("making a file in " + directory);
  return file;
}

namespace {

// What an image can leave out, and what later ones can.
struct Shared {
  std::optional<storage::DeltaWriter> delta;  // not set: it has to be whole
  std::vector<storage::Block> blocks;         // its own, if it begins a group
};

Result<Shared> share(const ImageKeys& image, int file, std::uint64_t bytes, const storage::Base* base, Pace& pace,
                     const std::atomic<bool>& given_up) {
  Shared shared;
  const bool begins_group = wire::base_of(image.name.set) == image.name.set;
  if (base && !can_build_on(*base, image)) base = nullptr;
  if (!base && !begins_group) return shared;
  {
    BSP_TRY(const Comparing one, Comparing::begin(given_up));
    auto blocks = find_blocks(file, bytes, base ? base->block : storage::block_bytes(bytes), pace, given_up);
    if (given_up) return was_given_up();
    if (!blocks) return shared;
    if (base)
      shared.delta.emplace(*base, storage::copies_from(*base, *blocks), bytes);
    else
      shared.blocks = std::move(*blocks);
  }
  if (shared.delta && (shared.delta->size() > bytes / 2 || !holds(image, base->name, given_up))) shared.delta.reset();
  return shared;
}

}  // namespace

Result<StoredRank> store_image(const ImageKeys& image, int file, std::uint64_t bytes,
                               std::shared_ptr<const storage::Base> base, const std::atomic<bool>& given_up) {
  Pace pace;
  BSP_TRY(Shared shared, share(image, file, bytes, base.get(), pace, given_up));
  const auto& delta = shared.delta;
  const std::uint64_t content = delta ? delta->size() : bytes;
  BSP_TRY(const auto stored, image.storage->create(image.name, storage::file_bytes(content), &given_up));
  BSP_TRY(auto sealer, storage::Sealer::begin(image.key, image.name, content,
                                              [&](std::span<const std::byte> piece) { return stored->write(piece); }));
  const auto seal = [&](std::span<const std::byte> piece) -> Result<void> {
    if (given_up) return was_given_up();
    BSP_CHECK_OK(sealer.add(piece));
    pace.keep(stored->cpu_time());
    return {};
  };
  std::uint64_t freed = 0;
  const auto read = [&](std::uint64_t at, std::span<std::byte> into) -> Result<void> {
    BSP_CHECK_OK(read_memory(file, at, into));
    free_memory(file, std::exchange(freed, at + into.size()), at + into.size());
    return {};
  };
  if (delta) {
    BSP_CHECK_OK(delta->write(read, seal));
  } else {
    std::vector<std::byte> buffer(storage::kChunk);
    for (std::uint64_t at = 0; at < bytes;) {
      const auto piece =
          std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), bytes - at)));
      BSP_CHECK_OK(read(at, piece));
      BSP_CHECK_OK(seal(piece));
      at += piece.size();
    }
  }
  BSP_TRY(storage::Sealed sealed, sealer.finish());
  if (given_up) return was_given_up();
  BSP_CHECK_OK(stored->publish());
  StoredRank rank{.sealed = std::move(sealed), .built_on = 0, .base = nullptr};
  if (delta) {
    rank.built_on = base->name.set;
    rank.base = std::move(base);
  } else if (wire::base_of(image.name.set) != image.name.set) {
    // Without the mark the group's first image only stays longer.
    (void)image.storage->mark_whole(image.name, &given_up);
  } else if (!shared.blocks.empty()) {
    auto own = std::make_shared<storage::Base>();
    own->name = image.name;
    own->digest = rank.sealed.digest;
    own->key = image.key;
    own->block = storage::block_bytes(bytes);
    own->blocks = std::move(shared.blocks);
    storage::order_blocks(own->blocks);
    rank.base = std::move(own);
  }
  return rank;
}

static Result<std::string> key_of(const ImageKeys& image) {
  if (image.key_file.empty()) return image.key;
  const auto key = read_file(image.key_file);
  if (key && key->size() == storage::kKeyBytes) return *key;
  return fail(ErrorCode::kRefused,
              std::format("the Secret of spec.restoreFrom.keySecret must have a {} of {} bytes: {}", names::kSetKey,
                          storage::kKeyBytes, key ? std::format("it has {}", key->size()) : key.error().message));
}

Result<StreamEnd> load_image(const ImageKeys& image, const std::string& digest, transfer::Receiver& receiver,
                             const std::atomic<bool>& given_up) {
  const std::uint64_t begun = realtime_ns();
  BSP_TRY(const std::string key, key_of(image));
  BSP_TRY(const auto file, open_listed(image, image.name, given_up));
  bool whole = false;
  storage::Unpacker unpacker(
      image.name, [&](const storage::ImageName& base) { return open_listed(image, base, given_up); },
      [&](std::span<const std::byte> plain) -> Result<void> {
        if (given_up) return was_given_up();
        BSP_TRY(whole, receiver.feed(plain));
        return {};
      });
  storage::Opener opener(key, image.name, digest,
                         [&](std::span<const std::byte> plain) { return unpacker.feed(plain); });
  std::vector<std::byte> buffer(storage::kChunk);
  for (;;) {
    if (given_up) return was_given_up();
    BSP_TRY(const std::size_t n, file->read(buffer));
    if (n == 0) break;
    BSP_CHECK_OK(opener.feed(std::span(buffer).first(n)));
  }
  BSP_CHECK_OK(opener.finish());
  BSP_CHECK_OK(unpacker.finish());
  if (!whole) return fail(ErrorCode::kRefused, "the stored image is damaged: its content ends too early");
  const transfer::Totals totals = receiver.totals();
  return StreamEnd{totals.files, totals.bytes, realtime_ns() - begun};
}

bool is_damage(const Error& error) {
  return error.code == ErrorCode::kRefused || error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid;
}

}  // namespace bsp::sidecar
