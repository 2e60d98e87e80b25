#include "sidecar/init/last_words.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <format>
#include <string_view>

#include "base/core/fd.h"
#include "crds/names.h"
#include "crds/refusal.h"
#include "sidecar/ring/ring.h"

namespace bsp::init {

namespace {

constexpr int kNoSurprise = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

void append(const std::string& log, std::string_view note) {
  const Fd message(::open(log.c_str(), O_WRONLY | O_APPEND | kNoSurprise));
  struct stat info{};
  if (!message || ::fstat(message.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::string text = std::format("{}{}\n", info.st_size > 0 ? "\n" : "", note);
  (void)!::write(message.get(), text.data(), text.size());  // the program may have filled it
}

}  // namespace

void note_finalized(const std::string& ring, const std::string& log) {
  const Fd shared(::open(ring.c_str(), O_RDONLY | kNoSurprise));
  std::uint32_t state = 0;
  if (!shared || ::pread(shared.get(), &state, sizeof state, offsetof(bsp_ring, state)) != sizeof state) return;
  if (state == BSP_RANK_FINALIZED) append(log, names::kFinalizedNote);
}

void note_reason(const std::string& why, const std::string& log) {
  for (const std::string_view reason : {names::kAborted, names::kEpochFailed})
    if (why.contains(reason)) append(log, reason);
}

}  // namespace bsp::init
