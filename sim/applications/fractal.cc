#include "sim/applications/fractal.h"

#include <cmath>
#include <format>

namespace bsp::sim {
namespace {

class FractalWorkload final : public Workload {
 public:
  explicit FractalWorkload(const Fractal& p) : p_(p) {}

  [[nodiscard]] std::string name() const override { return std::format("fractal, domain {:g}", p_.domain); }
  [[nodiscard]] std::uint32_t ranks() const override { return p_.ranks; }
  [[nodiscard]] std::uint64_t supersteps() const override { return static_cast<std::uint64_t>(std::ceil(p_.ranges())); }

  void demand(std::uint64_t, Demand& out) const override {
    out.instructions.assign(p_.ranks, p_.comparisons() * p_.comparison_instructions);
    out.messages.clear();
    if (p_.ranks == 1) return;
    for (std::uint32_t i = 0; i < p_.ranks; ++i)
      out.messages.push_back({RankId{i}, RankId{(i + 1) % p_.ranks}, 8 * p_.ranges()});
  }

  [[nodiscard]] double memory_bytes(RankId, std::uint64_t) const override { return p_.image * p_.image / p_.ranks; }

 private:
  Fractal p_;
};

}  // namespace

double Fractal::comparisons() const {
  const double domains = image / domain * (image / domain) / ranks;
  return ranges() * 8 * domains;
}

std::unique_ptr<Workload> make(const Fractal& parameters) { return std::make_unique<FractalWorkload>(parameters); }

Application fractal() {
  return {.name = "fractal",
          .summary = "fractal image compression: much computation, little communication",
          .parameters = {{"domain", "", "edge of a domain, pixels"},
                         {"range", "0", "edge of a range, pixels; 0 = half a domain"},
                         {"image", "1000", "edge of the image, pixels"},
                         {"comparison", "1500", "instructions to compare a range with a domain"}},
          .make = [](std::uint32_t ranks, const Parameters& given) -> Result<std::unique_ptr<Workload>> {
            Fractal p{.ranks = ranks};
            BSP_TRY(p.image, given.number("image", 1, 1e6));
            BSP_TRY(p.domain, given.number("domain", 1, p.image));
            BSP_TRY(p.range, given.number("range", 0, p.domain));
            BSP_TRY(p.comparison_instructions, given.number("comparison", 1e-3));
            if (p.range != 0 && p.range < 1)
              return fail(ErrorCode::kInvalid, "fractal: range must be 0, or at least 1 pixel");
            return make(p);
          }};
}

}  // namespace bsp::sim
