#include "sim/applications/smith_waterman.h"

#include <format>

namespace bsp::sim {
namespace {

class SmithWatermanWorkload final : public Workload {
 public:
  explicit SmithWatermanWorkload(const SmithWaterman& p) : p_(p) {}

  [[nodiscard]] std::string name() const override { return std::format("smith-waterman, order {}", p_.ranks); }
  [[nodiscard]] std::uint32_t ranks() const override { return p_.ranks; }
  [[nodiscard]] std::uint64_t supersteps() const override { return 2 * std::uint64_t{p_.ranks} - 1; }

  void demand(std::uint64_t s, Demand& out) const override {
    out.instructions.assign(p_.ranks, 0);
    out.messages.clear();
    const double instructions = p_.factor * p_.l(s);
    for (std::uint32_t j = 0; j < p_.ranks; ++j) {
      const bool computes = s > j && s <= j + std::uint64_t{p_.ranks};
      if (!computes) continue;
      out.instructions[j] = instructions;
      if (j + 1 < p_.ranks) out.messages.push_back({RankId{j}, RankId{j + 1}, p_.matrix_bytes / p_.ranks});
    }
  }

  [[nodiscard]] double memory_bytes(RankId, std::uint64_t) const override {
    return p_.program_bytes + p_.matrix_bytes / p_.ranks;
  }

 private:
  SmithWaterman p_;
};

}  // namespace

double SmithWaterman::l(std::uint64_t s) const {
  const double step = (last_instructions - first_instructions) / (2 * static_cast<double>(ranks) - 2);
  return first_instructions + step * static_cast<double>(s - 1);
}

std::unique_ptr<Workload> make(const SmithWaterman& parameters) {
  return std::make_unique<SmithWatermanWorkload>(parameters);
}

Application smith_waterman() {
  return {.name = "smith-waterman",
          .summary =
              "antidiagonals of a matrix, one column per rank: ranks start one by one, with growing work, and finish "
              "one by one",
          .parameters = {{"first", "1e6", "instructions per cell in the first superstep"},
                         {"last", "1e9", "instructions per cell in the last superstep"},
                         {"factor", "2.01", "multiplies both (fitted)"},
                         {"matrix", "5e6", "bytes of the matrix; each rank holds and sends an equal part"},
                         {"program", "700e3", "bytes of each rank besides its part"}},
          .make = [](std::uint32_t ranks, const Parameters& given) -> Result<std::unique_ptr<Workload>> {
            if (ranks < 2)
              return fail(ErrorCode::kInvalid, "smith-waterman has one column per rank: it needs at least 2 ranks");
            SmithWaterman p{.ranks = ranks};
            BSP_TRY(p.first_instructions, given.number("first", 0));
            BSP_TRY(p.last_instructions, given.number("last", 1));
            BSP_TRY(p.factor, given.number("factor", 1e-6));
            BSP_TRY(p.matrix_bytes, given.number("matrix", 1));
            BSP_TRY(p.program_bytes, given.number("program", 0));
            if (p.last_instructions < p.first_instructions)
              return fail(ErrorCode::kInvalid, "smith-waterman: last must not be below first, because the load grows");
            return make(p);
          }};
}

}  // namespace bsp::sim
