#include "sim/applications/lu.h"

#include <algorithm>
#include <format>

namespace bsp::sim {
namespace {

class LuWorkload final : public Workload {
 public:
  explicit LuWorkload(const Lu& p) : p_(p), R_(p.rows == 0 ? lu_rows(p.ranks) : p.rows), C_(p.ranks / R_) {}

  [[nodiscard]] std::string name() const override { return std::format("lu, order {}, {}x{} ranks", p_.order, R_, C_); }
  [[nodiscard]] std::uint32_t ranks() const override { return p_.ranks; }
  [[nodiscard]] std::uint64_t supersteps() const override { return 2 * p_.order + 1; }

  void demand(std::uint64_t t, Demand& out) const override {
    out.instructions.assign(p_.ranks, 0);
    out.messages.clear();
    if (t == 1) {
      pass_diagonal(0, out);
    } else if (t % 2 == 0) {
      second((t - 2) / 2, out);
    } else {
      third((t - 3) / 2, out);
    }
  }

  [[nodiscard]] double memory_bytes(RankId i, std::uint64_t) const override {
    return p_.memory_bytes * cells(0, i.value / C_, R_) * cells(0, i.value % C_, C_);
  }

 private:
  // How many of the indices from `least` to n−1 are `residue` modulo `modulus`.
  [[nodiscard]] double cells(std::uint64_t least, std::uint64_t residue, std::uint64_t modulus) const {
    const auto below = [&](std::uint64_t end) { return end > residue ? (end - residue - 1) / modulus + 1 : 0; };
    return static_cast<double>(below(p_.order) - below(std::min(least, p_.order)));
  }
  [[nodiscard]] RankId rank(std::uint64_t r, std::uint64_t c) const {
    return RankId{static_cast<std::uint32_t>(r * C_ + c)};
  }

  // Sends a_kk to the ranks of its column that have cells below it.
  void pass_diagonal(std::uint64_t k, Demand& out) const {
    if (k >= p_.order) return;
    for (std::uint64_t r = 0; r < R_; ++r)
      if (r != k % R_ && cells(k + 1, r, R_) > 0)
        out.messages.push_back({rank(k % R_, k % C_), rank(r, k % C_), p_.cell_bytes});
  }

  void second(std::uint64_t k, Demand& out) const {
    const std::uint64_t row_k = k % R_, column_k = k % C_;
    for (std::uint64_t r = 0; r < R_; ++r) {
      const double below = cells(k + 1, r, R_);
      if (below == 0) continue;
      out.instructions[rank(r, column_k).value] = p_.update_instructions * below;
      for (std::uint64_t c = 0; c < C_; ++c)
        if (c != column_k && cells(k + 1, c, C_) > 0)
          out.messages.push_back({rank(r, column_k), rank(r, c), p_.cell_bytes * below});
    }
    for (std::uint64_t c = 0; c < C_; ++c) {
      const double right = cells(k + 1, c, C_);
      if (right == 0) continue;
      for (std::uint64_t r = 0; r < R_; ++r)
        if (r != row_k && cells(k + 1, r, R_) > 0)
          out.messages.push_back({rank(row_k, c), rank(r, c), p_.cell_bytes * right});
    }
  }

  void third(std::uint64_t k, Demand& out) const {
    for (std::uint64_t r = 0; r < R_; ++r) {
      const double below = cells(k + 1, r, R_);
      for (std::uint64_t c = 0; c < C_; ++c)
        out.instructions[rank(r, c).value] = p_.update_instructions * below * cells(k + 1, c, C_);
    }
    pass_diagonal(k + 1, out);
  }

  Lu p_;
  std::uint64_t R_, C_;
};

}  // namespace

std::uint32_t lu_rows(std::uint32_t ranks) {
  std::uint32_t rows = 1;
  while (rows * std::uint64_t{rows} < ranks || ranks % rows != 0) ++rows;
  return rows;
}

std::unique_ptr<Workload> make(const Lu& parameters) { return std::make_unique<LuWorkload>(parameters); }

Application lu() {
  return {.name = "lu",
          .summary = "LU decomposition, cells distributed cyclically: the work shrinks from superstep to superstep",
          .parameters = {{"order", "", "of the matrix"},
                         {"rows", "0", "of the grid of ranks; 0 = as square as possible"},
                         {"update", "1000", "instructions per updated cell"},
                         {"cell", "4", "bytes per sent cell"},
                         {"memory", "1.5", "bytes per cell in a rank's memory"}},
          .make = [](std::uint32_t ranks, const Parameters& given) -> Result<std::unique_ptr<Workload>> {
            Lu p{.ranks = ranks};
            BSP_TRY(p.order, given.whole("order", 1, 1'000'000));
            BSP_TRY(const std::uint64_t rows, given.whole("rows", 0, ranks));
            BSP_TRY(p.update_instructions, given.number("update", 1e-3));
            BSP_TRY(p.cell_bytes, given.number("cell", 1e-3));
            BSP_TRY(p.memory_bytes, given.number("memory", 0));
            if (rows != 0 && ranks % rows != 0)
              return fail(ErrorCode::kInvalid,
                          std::format("lu: rows={} does not divide the {} ranks: use a divisor, or 0", rows, ranks));
            p.rows = static_cast<std::uint32_t>(rows);
            return make(p);
          }};
}

}  // namespace bsp::sim
