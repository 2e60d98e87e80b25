// LU decomposition of a dense matrix in BSP style, with its residual and a solution of Ax = b. factors.h describes
// the supersteps.
//
// An ordinary MPI program: it doesn't depend on the operator, which may move its ranks while it runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <print>
#include <vector>

#include "apps/common/crc64.h"
#include "apps/common/world.h"
#include "apps/lu/factors.h"
#include "apps/lu/options.h"

namespace {

using apps::World;
using lu::Factors;
using lu::Options;

constexpr const char* kProgram = "lu";

// Prints the residuals; returns whether rounding explains them.
bool show(const Options& options, double residual, double backward_error, const std::vector<double>& x) {
  const double limit = lu::tolerance(options.matrix.order);
  std::println("{}: |PA - LU| / |A| = {:.2e}, rounding explains {:.2e}", kProgram, residual, limit);
  std::print("{}: Ax = b: |Ax - b| / (|A| |x| + |b|) = {:.2e}, x =", kProgram, backward_error);
  for (std::size_t i = 0; i < std::min<std::size_t>(x.size(), 4); ++i) std::print(" {:.6f}", x[i]);
  std::println("{}", x.size() > 4 ? " ..." : "");
  return residual <= limit && backward_error <= limit;
}

int run_sequential(const Options& options) {
  const std::size_t n = options.matrix.order;
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> cells = options.matrix.cells();
  const auto pivots = lu::factor(cells, n);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!pivots) {
    std::println(stderr, "{}: {}", kProgram, pivots.error());
    return 1;
  }
  const auto x = lu::solve(options.matrix, cells, *pivots);
  std::vector<double> product(n), row_sums(n);
  lu::multiply(options.matrix, {.n = n}, {.n = n}, x, product, row_sums);
  bool ok = show(options, lu::residual(options.matrix, cells, *pivots),
                 lu::backward_error(options.matrix, x, product, row_sums), x);
  apps::OutputFile output(kProgram, options.output);
  output.write(std::as_bytes(std::span(cells)));
  ok = output.close() && ok;
  std::println("{}: {} factors crc={:016x}, 1 rank, sequential, {:.3f} s", kProgram, ok ? "OK" : "FAILED",
               apps::crc64(0, std::as_bytes(std::span(cells))), took.count());
  return ok ? 0 : 1;
}

void print_line(const Factors& factors, const Options& options, std::size_t s) {
  const auto& pivots = factors.pivots();
  std::print("superstep {}/{}  column {}/{}", s, factors.supersteps(), pivots.size(), options.matrix.order);
  if (!pivots.empty()) {
    const auto [least, most] = std::ranges::minmax_element(pivots, {}, &lu::Pivot::value);
    std::print("  pivots from {:.3f} to {:.3f}", least->value, most->value);
  }
  std::println("");
  std::fflush(stdout);
}

// Rank 0 receives the factors row by row. `reference` holds the sequential program's, or nothing. Returns whether all
// are equal and written.
bool collect(const Options& options, const World& world, Factors& factors, const std::vector<double>& reference,
             std::uint64_t& crc) {
  apps::OutputFile output(kProgram, world.first() ? options.output : "");
  bool equal = true;
  factors.collect([&](std::size_t i, const std::vector<double>& row) {
    crc = apps::crc64(crc, std::as_bytes(std::span(row)));
    output.write(std::as_bytes(std::span(row)));
    if (reference.empty() || !equal) return;
    equal = std::memcmp(row.data(), &reference[i * row.size()], row.size() * sizeof(double)) == 0;
    if (!equal) std::println(stderr, "{}: row {} differs from the sequential program", kProgram, i + 1);
  });
  return output.close() && equal;
}

// The sequential program's factors and pivots; returns whether its pivots are the same.
bool run_alone(const Options& options, const Factors& factors, std::vector<double>& cells) {
  cells = options.matrix.cells();
  const auto pivots = lu::factor(cells, options.matrix.order);
  const bool equal = pivots && std::ranges::equal(*pivots, factors.pivots(), {}, {},
                                                  [](const lu::Pivot& p) { return static_cast<std::size_t>(p.row); });
  if (!equal) std::println(stderr, "{}: the pivots differ from the sequential program's", kProgram);
  return equal;
}

int run_rank(const Options& options) {
  const World world;
  const auto ranks = static_cast<std::size_t>(world.size);
  const std::size_t process_rows = options.process_rows > 0 ? options.process_rows : lu::default_rows(ranks);
  if (ranks % process_rows != 0) {
    if (world.first())
      std::println(stderr, "{}: --process-rows {} does not divide the {} ranks; use a divisor", kProgram, process_rows,
                   ranks);
    return 2;
  }
  Factors factors(world, options.matrix, options.block, process_rows);

  const double start = MPI_Wtime();
  for (std::size_t s = 1; s <= factors.supersteps(); ++s) {
    factors.superstep(s);
    if (factors.singular_at() < options.matrix.order) {
      if (world.first()) std::println(stderr, "{}: {}", kProgram, lu::singular(factors.singular_at()));
      return 1;
    }
    if (world.first() && options.line_due(s, factors.supersteps())) print_line(factors, options, s);
  }
  const double took = MPI_Wtime() - start;

  const double residual = factors.residual();
  const auto x = factors.solve();
  const double backward_error = factors.backward_error(x);
  bool ok = !world.first() || show(options, residual, backward_error, x);
  std::vector<double> reference;
  if (world.first() && options.verify) ok = run_alone(options, factors, reference) && ok;
  std::uint64_t crc = 0;
  ok = collect(options, world, factors, reference, crc) && ok;

  apps::print_computing(world, kProgram, factors.computing());
  ok = apps::all_ranks(ok);
  if (world.first()) {
    std::println("{}: {} factors crc={:016x}, {} supersteps, {} in a grid of {} x {}{}, {:.3f} s", kProgram,
                 ok ? "OK" : "FAILED", crc, factors.supersteps(), apps::ranks_in_words(world), process_rows,
                 ranks / process_rows, options.verify ? ", equal to the sequential program" : "", took);
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto check = [](const Options& o) -> std::string {
    return o.matrix.zero_column > o.matrix.order
               ? "--zero-column: the matrix has no such column; the maximum is --order"
               : "";
  };
  return apps::run<Options>(kProgram, argc, argv, lu::table, check, run_sequential, run_rank);
}
