#include "sim/applications/applications.h"

#include "sim/applications/fractal.h"
#include "sim/applications/lattice_boltzmann.h"
#include "sim/applications/lu.h"
#include "sim/applications/smith_waterman.h"

namespace bsp::sim {

std::span<const Application> applications() {
  static const std::vector<Application> all{lattice_boltzmann(), smith_waterman(), lu(), fractal()};
  return all;
}

}  // namespace bsp::sim
