#include "sidecar/shim/library/pmix_version.h"

#include <pmix.h>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {

const char* pmix_version() {
  using Version = decltype(&PMIx_Get_version);
  static const auto version = reinterpret_cast<Version>(find_in_mpi("PMIx_Get_version"));
  return version != nullptr ? version() : nullptr;
}

void require_known_pmix() {
  const char* said = pmix_version();
  if (parse_pmix_version(said).major > 5)
    refuse(
        "Open MPI uses \"%.*s\" in this image; PMIx up to 5 is supported (build the image with Open MPI 5 and the PMIx "
        "that it brings)",
        static_cast<int>(std::strcspn(said, ",\n")), said);
}

}  // namespace bsp::shim
