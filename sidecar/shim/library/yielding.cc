#include "sidecar/shim/library/yielding.h"

#include <unistd.h>

#include <cstdlib>

#include "sidecar/shim/library/real.h"

namespace bsp::shim {

void choose_yielding(std::size_t ranks_of_pod) {
  static const bool user_chose = std::getenv("OMPI_MCA_mpi_yield_when_idle") != nullptr;
  static const auto set = reinterpret_cast<bool (*)(bool)>(find_in_mpi("opal_progress_set_yield_when_idle"));
  if (user_chose || set == nullptr) return;
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);  // the node's: who has CPUs of his own among them has one at least
  set(cpus > 0 && ranks_of_pod > static_cast<std::size_t>(cpus));
}

}  // namespace bsp::shim
