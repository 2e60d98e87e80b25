// Local alignment of two sequences in BSP style. The matrix is cut into vertical strips, one per rank, and into
// blocks of rows. Superstep s computes the s-th antidiagonal of blocks and ends with MPI_Barrier. With as many blocks
// as ranks that is 2n - 1 supersteps, and each rank computes in n of them.
//
// An ordinary MPI program: it doesn't depend on the operator, which may move its ranks while it runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <print>
#include <vector>

#include "apps/common/crc64.h"
#include "apps/common/world.h"
#include "apps/smith_waterman/alignment.h"
#include "apps/smith_waterman/options.h"
#include "apps/smith_waterman/sequence.h"

namespace {

using apps::share;
using apps::World;
using sw::Alignment;
using sw::Best;
using sw::Options;
using sw::Pair;
using sw::Strip;

constexpr const char* kProgram = "smith_waterman";
enum Tag { kRows = 1, kColumns = 2, kPath = 3 };

// If a file is not a sequence, prints a message on stderr and returns false.
bool load(const Options& options, Pair& pair) {
  if (options.file_a.empty()) {
    pair = sw::generate(options.rows, options.columns, options.seed);
    return true;
  }
  const auto read = [](const char* option, const std::string& file, std::string& sequence) {
    auto found = sw::read_fasta(file);
    if (found)
      sequence = std::move(*found);
    else
      std::println(stderr, "{}: {} {}: {}", kProgram, option, file, found.error());
    return found.has_value();
  };
  const bool a = read("--a", options.file_a, pair.a), b = read("--b", options.file_b, pair.b);
  return a && b;
}

void print_line(std::uint64_t s, std::uint64_t supersteps, std::int64_t best) {
  std::println("superstep {}/{}  best score so far {}", s, supersteps, best);
  std::fflush(stdout);
}

// The sequential program: the whole matrix in one strip.
Strip run_alone(const Options& options, const Pair& pair, std::size_t blocks, bool verbose) {
  Strip strip(pair.a, pair.b, options.scoring, 0, pair.b.size());
  for (std::size_t block = 0; block < blocks; ++block) {
    strip.compute(share(pair.a.size(), block, blocks), share(pair.a.size(), block + 1, blocks));
    if (verbose && options.line_due(block + 1, blocks)) print_line(block + 1, blocks, strip.best().score);
  }
  return strip;
}

Alignment alignment_of(const Options& options, const Pair& pair, const Strip& strip, const Best& best) {
  return {best, sw::trace_back(strip, pair.a, pair.b, options.scoring, best)};
}

// Prints the alignment's first blocks and writes all of it; returns whether its letters add up to the matrix's score.
bool show(const Options& options, const Pair& pair, const Alignment& alignment) {
  std::print("{}: {}\n{}", kProgram, sw::in_words(alignment, pair.a, pair.b),
             sw::picture(alignment, pair.a, pair.b, 2));
  apps::OutputFile output(kProgram, options.output);
  const std::string all =
      sw::in_words(alignment, pair.a, pair.b) + "\n" + sw::picture(alignment, pair.a, pair.b, alignment.path.size());
  output.write(std::as_bytes(std::span(all)));
  const std::int64_t score = sw::score_of(alignment, pair.a, pair.b, options.scoring);
  if (score != alignment.end.score)
    std::println(stderr, "{}: the matrix's score is {}, but the alignment's letters add up to {}", kProgram,
                 alignment.end.score, score);
  return output.close() && score == alignment.end.score;
}

int run_sequential(const Options& options) {
  Pair pair;
  if (!load(options, pair)) return 2;
  const auto start = std::chrono::steady_clock::now();
  const std::size_t blocks = options.blocks > 0 ? options.blocks : 10;
  const Strip strip = run_alone(options, pair, blocks, true);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const Alignment alignment = alignment_of(options, pair, strip, strip.best());
  const bool ok = show(options, pair, alignment);
  std::uint64_t crc = 0;
  for (std::size_t i = 0; i < strip.count(); ++i) crc = apps::crc64(crc, std::as_bytes(strip.column(i)));
  std::println("{}: {} matrix crc={:016x}, score {}, 1 rank, sequential, {:.3f} s", kProgram, ok ? "OK" : "FAILED", crc,
               alignment.end.score, took.count());
  return ok ? 0 : 1;
}

class Wavefront {  // this rank's part of the supersteps
 public:
  Wavefront(const World& world, Strip& strip, std::size_t rows, std::size_t blocks)
      : world_(world), strip_(strip), rows_(rows), blocks_(blocks) {}

  [[nodiscard]] std::uint64_t supersteps() const { return blocks_ + static_cast<std::size_t>(world_.size) - 1; }
  [[nodiscard]] double computing() const { return computing_; }

  // Superstep s = 1 …: computes this rank's block of the antidiagonal, if any, and sends it to the right.
  void superstep(std::uint64_t s) {
    std::vector<std::int32_t> cells;
    MPI_Request request = MPI_REQUEST_NULL;
    if (const auto block = block_of(world_.rank, s); block < blocks_) {
      const double begin = MPI_Wtime();
      strip_.compute(share(rows_, block, blocks_), share(rows_, block + 1, blocks_));
      if (world_.rank + 1 < world_.size)
        cells = strip_.pack(share(rows_, block, blocks_), share(rows_, block + 1, blocks_));
      computing_ += MPI_Wtime() - begin;
      if (world_.rank + 1 < world_.size)
        MPI_Isend(cells.data(), static_cast<int>(cells.size()), MPI_INT32_T, world_.rank + 1, kRows, MPI_COMM_WORLD,
                  &request);
    }
    if (const auto block = block_of(world_.rank - 1, s); world_.rank > 0 && block < blocks_) {
      const std::size_t first = share(rows_, block, blocks_), end = share(rows_, block + 1, blocks_);
      std::vector<std::int32_t> left(strip_.left_cells(first, end));
      MPI_Recv(left.data(), static_cast<int>(left.size()), MPI_INT32_T, world_.rank - 1, kRows, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      strip_.unpack(first, end, left);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  // The block of rows that a rank computes in superstep s; >= blocks_ if none.
  [[nodiscard]] std::size_t block_of(int rank, std::uint64_t s) const {
    return static_cast<std::size_t>(s - 1) - static_cast<std::size_t>(rank);  // wraps around before its first block
  }

  const World& world_;
  Strip& strip_;
  std::size_t rows_, blocks_;
  double computing_ = 0;
};

Best best_of_all(const World& world, const Best& mine) {
  std::vector<Best> all(static_cast<std::size_t>(world.size));
  static_assert(sizeof(Best) == 3 * sizeof(std::int64_t));
  MPI_Allgather(&mine, 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, MPI_COMM_WORLD);
  return *std::ranges::min_element(all, [](const Best& x, const Best& y) { return x.better_than(y); });
}

// On rank 0: the alignment. The owner of the best cell has everything to its left and above.
Alignment collect_alignment(const World& world, const Options& options, const Pair& pair, const Strip& strip,
                            const Best& best) {
  if (best.score == 0) return {};
  const bool mine = strip.owns(best.column);
  if (mine) {
    const Alignment alignment = alignment_of(options, pair, strip, best);
    if (world.first()) return alignment;
    MPI_Send(alignment.path.data(), static_cast<int>(alignment.path.size()), MPI_CHAR, 0, kPath, MPI_COMM_WORLD);
  }
  if (!world.first()) return {};
  std::string path(pair.a.size() + pair.b.size(), ' ');
  MPI_Status status;
  int length = 0;
  MPI_Recv(path.data(), static_cast<int>(path.size()), MPI_CHAR, MPI_ANY_SOURCE, kPath, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_CHAR, &length);
  path.resize(static_cast<std::size_t>(length));
  return {best, path};
}

// Rank 0 receives the matrix column by column, in order; the others send theirs. `reference` is the sequential
// program's matrix, or null. Returns whether every column equals it.
bool collect_matrix(const World& world, const Pair& pair, const Strip& strip, const Strip* reference,
                    std::uint64_t& crc) {
  const int rows = static_cast<int>(pair.a.size());
  if (!world.first()) {
    for (std::size_t i = 0; i < strip.count(); ++i)
      MPI_Send(strip.column(i).data(), rows, MPI_INT32_T, 0, kColumns, MPI_COMM_WORLD);
    return true;
  }
  bool equal = true;
  std::vector<std::int32_t> received(pair.a.size());
  const auto ranks = static_cast<std::size_t>(world.size);
  for (std::size_t rank = 0, j = 0; rank < ranks; ++rank)
    for (; j < share(pair.b.size(), rank + 1, ranks); ++j) {
      if (rank > 0)
        MPI_Recv(received.data(), rows, MPI_INT32_T, static_cast<int>(rank), kColumns, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      const std::span<const std::int32_t> column = rank == 0 ? strip.column(j) : received;
      crc = apps::crc64(crc, std::as_bytes(column));
      if (reference != nullptr && equal && !std::ranges::equal(column, reference->column(j))) {
        std::println(stderr, "{}: column {} (rank {}) differs from the sequential program", kProgram, j + 1, rank);
        equal = false;
      }
    }
  return equal;
}

bool same(const Alignment& alignment, const Alignment& expected) {
  const bool equal = alignment.path == expected.path && alignment.end.score == expected.end.score &&
                     alignment.row == expected.row && alignment.column == expected.column;
  if (!equal) std::println(stderr, "{}: the alignment differs from the sequential program's", kProgram);
  return equal;
}

int run_rank(const Options& options) {
  const World world;
  Pair pair;
  if (!apps::all_ranks(!world.first() || load(options, pair))) return 2;
  apps::broadcast(pair.a);
  apps::broadcast(pair.b);
  const auto rank = static_cast<std::size_t>(world.rank), ranks = static_cast<std::size_t>(world.size);
  const std::size_t first = share(pair.b.size(), rank, ranks), last = share(pair.b.size(), rank + 1, ranks);
  const std::size_t blocks = options.blocks > 0 ? options.blocks : ranks;
  Strip strip(pair.a, pair.b, options.scoring, first, last - first);
  Wavefront wavefront(world, strip, pair.a.size(), blocks);

  const double start = MPI_Wtime();
  for (std::uint64_t s = 1; s <= wavefront.supersteps(); ++s) {
    wavefront.superstep(s);
    if (!options.line_due(s, wavefront.supersteps())) continue;
    const Best best = best_of_all(world, strip.best());
    if (world.first()) print_line(s, wavefront.supersteps(), best.score);
  }
  const double took = MPI_Wtime() - start;

  const Best best = best_of_all(world, strip.best());
  const Alignment alignment = collect_alignment(world, options, pair, strip, best);
  std::uint64_t crc = 0;
  bool ok = true;
  if (world.first() && options.verify) {
    const Strip reference = run_alone(options, pair, 1, false);
    ok = collect_matrix(world, pair, strip, &reference, crc);
    ok = same(alignment, alignment_of(options, pair, reference, reference.best())) && ok;
  } else {
    collect_matrix(world, pair, strip, nullptr, crc);
  }
  if (world.first()) ok = show(options, pair, alignment) && ok;

  apps::print_computing(world, kProgram, wavefront.computing());
  ok = apps::all_ranks(ok);
  if (world.first()) {
    std::println("{}: {} matrix crc={:016x}, score {}, {} supersteps, {}{}, {:.3f} s", kProgram, ok ? "OK" : "FAILED",
                 crc, best.score, wavefront.supersteps(), apps::ranks_in_words(world),
                 options.verify ? ", equal to the sequential program" : "", took);
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run<Options>(kProgram, argc, argv, sw::table, sw::check, run_sequential, run_rank);
}
