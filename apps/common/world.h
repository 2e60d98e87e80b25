// MPI code shared by the applications: rank and size, agreement, start and end of a program.
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

// The index of the first of `total` items in part `part` of `parts`; the part ends where the next one begins.
constexpr std::size_t share(std::size_t total, std::size_t part, std::size_t parts) { return total * part / parts; }

// Whether it is true on every rank.
bool all_ranks(bool ok);

// Broadcasts rank 0's string.
void broadcast(std::string& text);

// Prints how long each rank computed in total. Where ranks do the same work, this shows how fast the machines are, or
// how one changed.
void print_computing(const World& world, std::string_view program, double seconds);

// "1 rank", "3 ranks"
std::string ranks_in_words(const World& world);

// A result file; an empty name means no file. The error names the option.
class OutputFile {
 public:
  OutputFile(std::string_view program, std::string name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void write(std::span<const std::byte> bytes);
  // Closes the file; on a write error prints a message on stderr and returns false.
  bool close();

 private:
  std::string program_, name_;
  std::FILE* file_ = nullptr;
  bool ok_ = true;
};

// main() of an application. `Options` derives from Common; `table(options)` is its list of options, `check(options)`
// returns a sentence if options contradict each other, or nothing.
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
    std::println(stderr, "{}: not enough memory for a problem of this size; use a smaller one, or more ranks", program);
    if (!options.sequential) MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks wait for this one
    return 1;
  }
}

}  // namespace apps
