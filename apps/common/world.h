// What the applications share of MPI: who a rank is, what all agree on, and how a program begins and ends.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <new>
#include <print>
#include <span>
#include <string>
#include <string_view>

#include "apps/common/arguments.h"

namespace apps {

struct World {
  World();
  int rank = 0, size = 1;
  [[nodiscard]] bool first() const { return rank == 0; }
};

// The first of `total` things that part `part` of `parts` has; it has those up to the first of the next part.
constexpr std::size_t share(std::size_t total, std::size_t part, std::size_t parts) { return total * part / parts; }

// Whether it is so for every rank.
bool all_ranks(bool ok);

// Rank 0's text, in every rank.
void broadcast(std::string& text);

// How long each rank computed, in all: where ranks do the same work, it tells apart the machines (or how one changed).
void print_computing(const World& world, std::string_view program, double seconds);

// "1 rank", "3 ranks"
std::string ranks_in_words(const World& world);

// A file of results; an empty name is no file. The error names the option.
class OutputFile {
 public:
  OutputFile(std::string_view program, std::string name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  // Closes it; false, and a sentence on stderr, if anything of it could not be written.
  bool close();

 private:
  std::string program_, name_;
  std::FILE* file_ = nullptr;
  bool ok_ = true;
};

// main() of an application. `Options` derives from Common; `table(options)` is its list of options, `check(options)`
// returns a sentence on what does not fit together, or nothing.
template <class Options, class Table, class Check, class Sequential, class Rank>
int run(std::string_view program, int argc, char** argv, Table table, Check check, Sequential sequential, Rank rank) {
  Options options;
  const auto list = table(options);
  const std::string help = usage(program, list);
  auto parsed = parse({argv + 1, static_cast<std::size_t>(argc - 1)}, list);
  if (parsed)
    if (const std::string wrong = check(options); !wrong.empty()) parsed = std::unexpected(wrong);
  if (!parsed) {
    std::println(stderr, "{}: {}\n{}", program, parsed.error(), help);
    return 2;
  }
  if (options.help) {
    std::print("{}", help);
    return 0;
  }
  try {
    if (options.sequential) return sequential(options);
    MPI_Init(&argc, &argv);
    const int status = rank(options);
    MPI_Finalize();
    return status;
  } catch (const std::bad_alloc&) {
    std::println(stderr, "{}: not enough memory for a problem of this size: give a smaller one, or more ranks",
                 program);
    if (!options.sequential) MPI_Abort(MPI_COMM_WORLD, 1);  // the others wait for this rank
    return 1;
  }
}

}  // namespace apps
