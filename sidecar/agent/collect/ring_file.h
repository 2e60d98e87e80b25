// The ring as the sidecar sees it: made, or adopted from a sidecar that was killed, and mapped for life.
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
  // A file of ours with the right magic and version is adopted as it is: the program is writing to it. Anything
  // else is replaced by a new file under a temporary name, so that nobody maps half a ring.
  static Result<RingFile> open(const std::string& path);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&&) = delete;
  ~RingFile();

  bsp_ring& operator*() const { return *ring_; }
  bsp_ring* operator->() const { return ring_; }
  [[nodiscard]] bool adopted() const { return adopted_; }
  // False once the program has shortened the file under us, or overwritten what says that it is a ring. It can still be
  // read (zeros, perhaps), but what it says is worth nothing, and the program does not see what is written.
  [[nodiscard]] bool intact() const;

 private:
  RingFile(bsp_ring* ring, bool adopted) : ring_(ring), adopted_(adopted) {}
  bsp_ring* ring_;
  bool adopted_;
};

// The program writes to the ring as well, anything and at any time: each value is read once, and what is given out is
// within the wire's limits.
std::uint64_t completed(const bsp_ring& ring);
// The supersteps after `since` that the ring still holds. Those it has lost are simply absent.
wire::RankReport make_report(const bsp_ring& ring, std::uint32_t rank, std::uint64_t since);

// "" if the last committed gate was not postponed.
std::string blocked_reason(const bsp_ring& ring);

// Of the blocking collectives of all ranks (names::kEdgeCalls); "" if there was none yet.
std::string_view most_called(const bsp_ring& ring);

}  // namespace bsp::collect
