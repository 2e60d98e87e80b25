// The ring as the sidecar sees it: created, or adopted from a killed sidecar, and mapped until exit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "crds/wire.h"
#include "sidecar/ring/ring.h"

namespace bsp::collect {

class RingFile {
 public:
  // Adopts a file owned by this user with the right magic and version as it is, because the program is writing to it.
  // Replaces anything else by a new file, renamed into place so that the program never maps half a ring. Fails if it can't tell,
  // because the program would not see a second ring.
  static Result<RingFile> open(const std::string& path);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&&) = delete;
  ~RingFile();

  bsp_ring& operator*() const { return *ring_; }
  bsp_ring* operator->() const { return ring_; }
  [[nodiscard]] bool adopted() const { return adopted_; }
  // As new, for another program; none may have it mapped. One that isn't intact stays so.
  void clear();
  // False once the program has truncated the file or overwritten the ring's header. The ring can still be read
  // (perhaps as zeros), but its contents are worthless, and the program doesn't see what is written.
  [[nodiscard]] bool intact() const;

 private:
  RingFile(bsp_ring* ring, bool adopted) : ring_(ring), adopted_(adopted) {}
  bsp_ring* ring_;
  bool adopted_;
};

// The program may write anything to the ring at any time. So each value is read once, and returned values are bounded
// to the wire's limits.
std::uint64_t completed(const bsp_ring& ring);
// The supersteps after `since` that are still in the ring; overwritten ones are absent. Of the sample of one in `every`.
wire::RankReport make_report(const bsp_ring& ring, std::uint32_t rank, std::uint64_t since, std::uint64_t every = 1);

// "" if the last committed gate was not postponed.
std::string blocked_reason(const bsp_ring& ring);

// Among the blocking collectives of all ranks (names::kEdgeCalls); "" if there was none yet.
std::string_view most_called(const bsp_ring& ring);

}  // namespace bsp::collect
