#include "apps/smith_waterman/sequence.h"

#include <algorithm>
#include <cctype>
#include <format>
#include <fstream>

namespace sw {
namespace {

class Random {  // SplitMix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
  }
  char letter() { return "ACGT"[below(4)]; }

 private:
  std::uint64_t state_;
};

}  // namespace

Pair generate(std::uint64_t rows, std::uint64_t columns, std::uint64_t seed) {
  Random random(seed);
  Pair pair;
  while (pair.a.size() < rows) pair.a += random.letter();
  // At least an eighth of b comes before the common stretch, and an eighth after it.
  while (pair.b.size() < columns / 8) pair.b += random.letter();
  for (std::uint64_t i = rows / 8; i < rows - rows / 8 && pair.b.size() < columns - columns / 8; ++i) {
    switch (random.below(100)) {
      case 0:  // a gap in b
        i += random.below(6);
        break;
      case 1:  // a gap in a
        for (std::uint64_t more = 1 + random.below(6); more > 0; --more) pair.b += random.letter();
        break;
      default:
        pair.b += random.below(10) == 0 ? random.letter() : pair.a[i];
    }
  }
  while (pair.b.size() < columns) pair.b += random.letter();
  pair.b.resize(columns);
  return pair;
}

std::expected<std::string, std::string> parse_fasta(std::string_view text) {
  std::string sequence;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with('>')) {
      if (!sequence.empty()) break;  // the second one
      continue;
    }
    for (const char c : line) {
      const auto letter = static_cast<unsigned char>(c);
      if (std::isspace(letter)) continue;
      if (!std::isalpha(letter) && c != '*')
        return std::unexpected(std::format("line {}: a sequence consists of letters, not byte {}", number, letter));
      sequence += static_cast<char>(std::toupper(letter));
    }
    if (sequence.size() > kLongest)
      return std::unexpected(std::format("the sequence is longer than {} letters; use a part of it", kLongest));
  }
  if (sequence.empty())
    return std::unexpected("it contains no sequence; use a FASTA file, with letters below a line that begins with >");
  return sequence;
}

std::expected<std::string, std::string> read_fasta(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::unexpected("it can't be opened; use a file that every user may read");
  std::string text(4 << 20, ' ');  // far more than the longest sequence, and a limit for endless files
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof())) return std::unexpected("it can't be read; is it a directory?");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_fasta(text);
}

}  // namespace sw
