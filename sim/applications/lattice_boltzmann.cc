#include "sim/applications/lattice_boltzmann.h"

#include <format>

namespace bsp::sim {
namespace {

class LatticeBoltzmannWorkload final : public Workload {
 public:
  explicit LatticeBoltzmannWorkload(const LatticeBoltzmann& p) : p_(p) {}

  [[nodiscard]] std::string name() const override {
    return std::format("lattice-boltzmann, {} supersteps", p_.supersteps);
  }
  [[nodiscard]] std::uint32_t ranks() const override { return p_.ranks; }
  [[nodiscard]] std::uint64_t supersteps() const override { return p_.supersteps; }

  void demand(std::uint64_t, Demand& out) const override {
    out.instructions.assign(p_.ranks, p_.instructions / p_.ranks);
    out.messages.clear();
    for (std::uint32_t i = 0; i + 1 < p_.ranks; ++i)
      out.messages.push_back({RankId{i}, RankId{i + 1}, p_.border_bytes});
  }

  [[nodiscard]] double memory_bytes(RankId, std::uint64_t) const override {
    return p_.lattice_bytes / p_.ranks + p_.program_bytes;
  }

 private:
  LatticeBoltzmann p_;
};

}  // namespace

std::unique_ptr<Workload> make(const LatticeBoltzmann& parameters) {
  return std::make_unique<LatticeBoltzmannWorkload>(parameters);
}

Application lattice_boltzmann() {
  return {.name = "lattice-boltzmann",
          .summary = "a lattice in vertical strips: all supersteps and all ranks are alike",
          .parameters = {{"supersteps", "1000", "number of supersteps"},
                         {"instructions", "1e10", "of the whole lattice in a superstep"},
                         {"lattice", "10e6", "bytes of the whole lattice"},
                         {"program", "500e3", "bytes of each rank besides its strip"},
                         {"border", "100e3", "bytes to the right neighbour in a superstep"}},
          .make = [](std::uint32_t ranks, const Parameters& given) -> Result<std::unique_ptr<Workload>> {
            LatticeBoltzmann p{.ranks = ranks};
            BSP_TRY(p.supersteps, given.whole("supersteps", 1, 100'000'000));  // a run stores the time of each
            BSP_TRY(p.instructions, given.number("instructions", 1));
            BSP_TRY(p.lattice_bytes, given.number("lattice", 0));
            BSP_TRY(p.program_bytes, given.number("program", 0));
            BSP_TRY(p.border_bytes, given.number("border", 1));
            return make(p);
          }};
}

}  // namespace bsp::sim
