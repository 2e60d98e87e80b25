// The sequences to align: generated or read.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace sw {

// The matrix of two such sequences takes 3.6 GB, over all ranks somewhat more.
inline constexpr std::uint64_t kLongest = 30000;

struct Pair {
  std::string a, b;
};

// DNA: `a` is random. `b` is a mutated stretch of `a` between random letters: where `b` follows `a`, one letter in
// ten differs and one in fifty begins a gap in either. The same arguments give the same sequences everywhere.
Pair generate(std::uint64_t rows, std::uint64_t columns, std::uint64_t seed);

// The first sequence of FASTA text. The error is a sentence.
std::expected<std::string, std::string> parse_fasta(std::string_view text);
std::expected<std::string, std::string> read_fasta(const std::string& file);

}  // namespace sw
