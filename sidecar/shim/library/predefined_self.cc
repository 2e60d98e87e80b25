#include "sidecar/shim/library/predefined_self.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "sidecar/shim/library/real.h"

namespace bsp::shim {
namespace {

// From Open MPI's ABI (communicator.h): predefined communicators are padded to this size.
constexpr std::size_t kPredefinedBytes = 512;

std::array<std::byte, kPredefinedBytes> own{};
std::size_t copied = 0;

}  // namespace

void fill_predefined_self(MPI_Comm real_self) {
  copied = std::min(kPredefinedBytes, malloc_usable_size(real_self));
  std::memcpy(own.data(), pre.comm_self, copied);
  std::memcpy(static_cast<void*>(pre.comm_self), real_self, copied);
}

void clear_predefined_self() {
  std::memcpy(static_cast<void*>(pre.comm_self), own.data(), copied);
  copied = 0;
}

}  // namespace bsp::shim
