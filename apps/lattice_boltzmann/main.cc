// A two-dimensional lattice Boltzmann flow in BSP style. The channel is cut into vertical strips, one per rank. A
// superstep is collide - exchange borders with both neighbours - stream, and ends with MPI_Barrier.
//
// An ordinary MPI program: it doesn't depend on the operator, which may move its ranks while it runs.
#include <mpi.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <print>
#include <vector>

#include "apps/common/crc64.h"
#include "apps/common/world.h"
#include "apps/lattice_boltzmann/options.h"
#include "apps/lattice_boltzmann/strip.h"

namespace {

using lbm::Options;
using lbm::Strip;

constexpr const char* kProgram = "lattice_boltzmann";
enum Tag { kToTheRight = 1, kToTheLeft = 2, kColumns = 3 };

// Unused memory that a checkpoint must carry unchanged.
class Ballast {
 public:
  Ballast(std::size_t mib, int rank) : seed_(0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(rank)) {
    words_.resize(mib * (1u << 20) / sizeof(std::uint64_t));
    std::uint64_t state = seed_;
    for (auto& word : words_) word = next(state);
  }
  [[nodiscard]] bool intact() const {
    std::uint64_t state = seed_;
    for (const auto word : words_)
      if (word != next(state)) return false;
    return true;
  }

 private:
  static std::uint64_t next(std::uint64_t& state) {  // xorshift64: incompressible
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  std::uint64_t seed_;
  std::vector<std::uint64_t> words_;
};

// Summary of the final field, computed without gathering it.
struct Digest {
  explicit Digest(const Options& options) : output(kProgram, options.output) {}
  std::uint64_t crc = 0;
  apps::OutputFile output;
  void add(std::span<const double> column) {
    crc = apps::crc64(crc, std::as_bytes(column));
    output.write(std::as_bytes(column));
  }
};

void step_alone(Strip& strip, std::vector<double>& halo) {
  strip.collide(1.0);
  strip.pack_right(halo);
  strip.unpack_left(halo);
  strip.pack_left(halo);
  strip.unpack_right(halo);
  strip.stream();
}

// The sequential program: the whole channel in one strip that is its own neighbour.
Strip run_alone(const Options& options, std::uint64_t supersteps, bool verbose) {
  Strip strip(options.channel, 0, options.channel.width);
  std::vector<double> halo(strip.halo_size());
  for (std::uint64_t s = 1; s <= supersteps; ++s) {
    for (std::uint64_t i = 0; i < options.substeps; ++i) step_alone(strip, halo);
    if (verbose && options.line_due(s, supersteps)) {
      std::println("superstep {}/{}  mass {:.6f}  max speed {:.6f}", s, supersteps, strip.mass(), strip.max_speed());
      std::fflush(stdout);
    }
  }
  return strip;
}

struct Ranks : apps::World {  // this rank among the others
  int left = (rank + size - 1) % size;
  int right = (rank + 1) % size;
};

struct Halos {
  explicit Halos(std::size_t size) : to_left(size), to_right(size), from_left(size), from_right(size) {}
  std::vector<double> to_left, to_right, from_left, from_right;
};

void exchange(const Ranks& me, Strip& strip, Halos& h) {
  const int n = static_cast<int>(strip.halo_size());
  MPI_Request requests[4];
  MPI_Irecv(h.from_left.data(), n, MPI_DOUBLE, me.left, kToTheRight, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(h.from_right.data(), n, MPI_DOUBLE, me.right, kToTheLeft, MPI_COMM_WORLD, &requests[1]);
  strip.pack_right(h.to_right);
  strip.pack_left(h.to_left);
  MPI_Isend(h.to_right.data(), n, MPI_DOUBLE, me.right, kToTheRight, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(h.to_left.data(), n, MPI_DOUBLE, me.left, kToTheLeft, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  strip.unpack_left(h.from_left);
  strip.unpack_right(h.from_right);
}

double total_mass(const Strip& strip) {
  const double mine = strip.mass();
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

void print_progress(const Ranks& me, const Options& options, const Strip& strip, std::uint64_t s) {
  const double mass = total_mass(strip), speed = strip.max_speed();
  double fastest = 0;
  MPI_Reduce(&speed, &fastest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (me.rank != 0) return;
  std::println("superstep {}/{}  mass {:.6f}  max speed {:.6f}", s, options.supersteps, mass, fastest);
  std::fflush(stdout);
}

// `seconds`: what this rank computed in each superstep.
void print_times(const Ranks& me, const std::vector<double>& seconds) {
  std::vector<double> slowest(seconds.size());
  MPI_Reduce(seconds.data(), slowest.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (!me.first()) return;
  std::print("{}: slowest rank by superstep:", kProgram);
  for (const double rank_seconds : slowest) std::print(" {:.3f}", rank_seconds);
  std::println(" s");
}

// Whether all ranks end now, because rank 0 has found the file that --until names.
bool told_to_end(const Ranks& me, const Options& options) {
  if (options.until.empty()) return false;
  int found = me.first() && std::filesystem::exists(options.until) ? 1 : 0;
  MPI_Bcast(&found, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return found != 0;
}

// Rank 0 receives the field column by column, in order; the others send theirs. `reference` is the sequential
// program's field, or null. Returns whether every column equals it.
bool collect(const Ranks& me, const Options& options, const Strip& strip, const Strip* reference, Digest& digest) {
  std::vector<double> column(strip.column_size()), expected(strip.column_size());
  const int n = static_cast<int>(column.size());
  if (me.rank != 0) {
    for (std::size_t i = 0; i < strip.count(); ++i) {
      strip.copy_column(i, column);
      MPI_Send(column.data(), n, MPI_DOUBLE, 0, kColumns, MPI_COMM_WORLD);
    }
    return true;
  }
  bool equal = true;
  const std::size_t width = options.channel.width, ranks = static_cast<std::size_t>(me.size);
  for (std::size_t rank = 0, x = 0; rank < ranks; ++rank)
    for (; x < apps::share(width, rank + 1, ranks); ++x) {
      if (rank == 0)
        strip.copy_column(x, column);
      else
        MPI_Recv(column.data(), n, MPI_DOUBLE, static_cast<int>(rank), kColumns, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      digest.add(column);
      if (reference == nullptr) continue;
      reference->copy_column(x, expected);
      if (std::memcmp(column.data(), expected.data(), column.size() * sizeof(double)) != 0 && equal) {
        std::println(stderr, "lattice_boltzmann: column {} (rank {}) differs from the sequential program", x, rank);
        equal = false;
      }
    }
  return equal;
}

// Collisions and streaming conserve mass; only rounding may change the sum.
bool mass_is_conserved(double before, double after) {
  const bool ok = std::abs(after - before) <= 1e-9 * before;
  if (!ok) std::println(stderr, "lattice_boltzmann: mass was {:.9f} and is {:.9f}", before, after);
  return ok;
}

int run_sequential(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const double before = Strip(options.channel, 0, options.channel.width).mass();
  const Strip strip = run_alone(options, options.supersteps, true);
  Digest digest(options);
  std::vector<double> column(strip.column_size());
  for (std::size_t x = 0; x < strip.count(); ++x) {
    strip.copy_column(x, column);
    digest.add(column);
  }
  bool ok = digest.output.close();
  ok = mass_is_conserved(before, strip.mass()) && ok;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::println("lattice_boltzmann: {} field crc={:016x}, {} supersteps, 1 rank, sequential, {:.3f} s",
               ok ? "OK" : "FAILED", digest.crc, options.supersteps, took.count());
  return ok ? 0 : 1;
}

int run_rank(const Options& options) {
  const Ranks me;
  const std::size_t width = options.channel.width;
  const auto rank = static_cast<std::size_t>(me.rank), ranks = static_cast<std::size_t>(me.size);
  if (width < ranks) {
    if (me.rank == 0)
      std::println(stderr, "lattice_boltzmann: --width {} is less than the {} ranks; use more columns, or fewer ranks",
                   width, ranks);
    return 2;
  }
  const std::size_t first = apps::share(width, rank, ranks), last = apps::share(width, rank + 1, ranks);
  Strip strip(options.channel, first, last - first);
  Halos halos(strip.halo_size());
  const Ballast ballast(options.ballast_mib, me.rank);
  const double work = options.work_of(me.rank);
  const double before = total_mass(strip);

  const double start = MPI_Wtime();
  double computing = 0;
  std::vector<double> times;
  std::uint64_t done = 0;
  while (done < options.supersteps && (done == 0 || !told_to_end(me, options))) {
    const double computed = computing;
    for (std::uint64_t i = 0; i < options.substeps; ++i) {
      const double begin = MPI_Wtime();
      strip.collide(work);
      const double collided = MPI_Wtime();
      exchange(me, strip, halos);
      const double exchanged = MPI_Wtime();
      strip.stream();
      computing += collided - begin + MPI_Wtime() - exchanged;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    ++done;
    if (options.times) times.push_back(computing - computed);
    if (options.line_due(done, options.supersteps)) print_progress(me, options, strip, done);
  }
  const double took = MPI_Wtime() - start;

  const double after = total_mass(strip);
  bool ok = mass_is_conserved(before, after);
  if (!ballast.intact()) {
    std::println(stderr, "lattice_boltzmann: rank {}: its ballast has changed", me.rank);
    ok = false;
  }
  Digest digest(me.first() ? options : Options{});
  if (me.first() && options.verify) {
    const Strip reference = run_alone(options, done, false);
    ok = collect(me, options, strip, &reference, digest) && ok;
  } else {
    collect(me, options, strip, nullptr, digest);
  }
  ok = digest.output.close() && ok;

  if (options.times) print_times(me, times);
  apps::print_computing(me, kProgram, computing);
  ok = apps::all_ranks(ok);
  if (me.first()) {
    std::println("lattice_boltzmann: {} field crc={:016x}, {} supersteps, {}{}, {:.3f} s", ok ? "OK" : "FAILED",
                 digest.crc, done, apps::ranks_in_words(me), options.verify ? ", equal to the sequential program" : "",
                 took);
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto all_fits = [](const Options&) { return std::string(); };
  return apps::run<Options>(kProgram, argc, argv, lbm::table, all_fits, run_sequential, run_rank);
}
