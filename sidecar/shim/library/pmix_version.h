// The PMIx library that Open MPI uses.
#pragma once

#include <cstdio>
#include <cstring>

namespace bsp::shim {

struct PmixVersion {
  int major = 0;
  int minor = 0;
  int release = 0;
};

// `said` by PMIx_Get_version(): "OpenPMIx 5.0.11rcH, …". Zeros if it is no version.
inline PmixVersion parse_pmix_version(const char* said) {
  PmixVersion found;
  const char* number = said != nullptr ? std::strpbrk(said, "0123456789") : nullptr;
  if (number == nullptr || std::sscanf(number, "%d.%d.%d", &found.major, &found.minor, &found.release) != 3) return {};
  return found;
}

// What the library says; nullptr if Open MPI exports no PMIx.
const char* pmix_version();

// Exits with a message if the sidecar's PMIx can't serve this library. PMIx 6 reads the answer to PMIx_Group_construct in another
// format, so that no MPI session opens.
void require_known_pmix();

}  // namespace bsp::shim
