// What is aligned: two sequences of letters, generated or read.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace sw {

// The matrix of two such has 3.6 GB, over all ranks somewhat more.
inline constexpr std::uint64_t kLongest = 30000;

struct Pair {
  std::string a, b;
};

// DNA: `a` at random; `b` is a stretch of `a` that has mutated, between letters at random: where `b` follows `a`, one letter
// in ten is another and one in fifty begins a gap in either. The same for the same arguments, everywhere.
Pair generate(std::uint64_t rows, std::uint64_t columns, std::uint64_t seed);

// The first sequence of FASTA text. The error is a sentence.
std::expected<std::string, std::string> parse_fasta(std::string_view text);
std::expected<std::string, std::string> read_fasta(const std::string& file);

}  // namespace sw
