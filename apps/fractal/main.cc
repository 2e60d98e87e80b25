// Fractal compression of a picture in BSP style. The domains are distributed among the ranks. In a superstep each
// rank compares a row of ranges with its domains and passes the best so far to its right neighbour, in a ring. Each
// superstep ends with MPI_Barrier; after as many supersteps as there are rows, every rank has seen every row. Each
// rank begins in a different part of the picture, so its load changes with the contents.
//
// An ordinary MPI program: it doesn't depend on the operator, which may move its ranks while it runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <expected>
#include <fstream>
#include <print>
#include <vector>

#include "apps/common/crc64.h"
#include "apps/common/world.h"
#include "apps/fractal/code.h"
#include "apps/fractal/encoder.h"
#include "apps/fractal/options.h"

namespace {

using apps::share;
using apps::World;
using fractal::Code;
using fractal::Encoder;
using fractal::Image;
using fractal::Key;
using fractal::Options;

constexpr const char* kProgram = "fractal";
enum Tag { kRow = 1 };

// A file's bytes, up to the size of the largest valid file; the error is a sentence.
std::expected<std::string, std::string> read_file(const std::string& name) {
  std::ifstream stream(name, std::ios::binary);
  if (!stream) return std::unexpected("it can't be opened; use a file that every user may read");
  std::string text, piece(1 << 20, ' ');
  while (stream && text.size() < 2 * fractal::kLargest * fractal::kLargest) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return std::unexpected("it can't be read; is it a directory?");
  return text;
}

// On failure prints a message on stderr and returns false.
bool load(const Options& options, Image& image) {
  if (options.image.empty()) {
    image = fractal::generate(options.width, options.height, options.seed);
    return true;
  }
  auto found = read_file(options.image).and_then([](const std::string& text) { return fractal::parse_pgm(text); });
  if (!found)
    std::println(stderr, "{}: --image {}: {}", kProgram, options.image, found.error());
  else
    image = std::move(*found);
  return found.has_value();
}

bool write(const std::string& name, const std::string& bytes) {
  apps::OutputFile file(kProgram, name);
  file.write(std::as_bytes(std::span(bytes)));
  return file.close();
}

// Results of the keys of all ranges: the code, the decompressed picture, and a preview.
bool show(const Options& options, const Image& image, const Image& all, const std::vector<Key>& keys) {
  const std::size_t r = options.range;
  const Encoder encoder(all, r, options.flat, 0, Encoder::domains(all, r));
  Code code{.width = image.width, .height = image.height, .r = r, .transforms = {}};
  for (std::size_t i = 0; i < keys.size(); ++i)
    code.transforms.push_back(encoder.transform(i / encoder.columns(), i % encoder.columns(), keys[i]));
  const std::string bytes = fractal::to_bytes(code);
  const Image picture = fractal::decompress(code);
  const auto flat = std::ranges::count(keys, fractal::kFlat, fractal::index_of);
  std::println("{}: {} x {} pixels in {} bytes ({:.1f} : 1), {} of {} ranges flat, PSNR {:.2f} dB\n{}", kProgram,
               image.width, image.height, bytes.size(),
               static_cast<double>(image.pixels.size()) / static_cast<double>(bytes.size()), flat, keys.size(),
               fractal::psnr(image, picture), fractal::thumbnail(picture, 64));
  bool ok = write(options.output, fractal::to_pgm(picture));
  ok = write(options.code, bytes) && ok;
  return write(options.original, fractal::to_pgm(image)) && ok;
}

std::uint64_t crc_of(const std::vector<Key>& keys) { return apps::crc64(0, std::as_bytes(std::span(keys))); }

void print_line(std::uint64_t s, std::uint64_t supersteps, std::size_t compared, std::size_t ranges) {
  std::println("superstep {}/{}  {} of {} ranges in a row compared", s, supersteps, compared, ranges);
  std::fflush(stdout);
}

// Compares a row of ranges; returns how many of them were not flat.
std::size_t search_row(const Encoder& encoder, std::size_t row, std::vector<Key>& keys) {
  std::size_t compared = 0;
  for (std::size_t column = 0; column < encoder.columns(); ++column) {
    Key& key = keys[row * encoder.columns() + column];
    key = encoder.search(row, column, key);
    compared += fractal::index_of(key) != fractal::kFlat;
  }
  return compared;
}

// The sequential program: all domains at once.
std::vector<Key> run_alone(const Options& options, const Image& all, bool verbose) {
  const Encoder encoder(all, options.range, options.flat, 0, Encoder::domains(all, options.range));
  std::vector<Key> keys(encoder.rows() * encoder.columns(), fractal::kNone);
  for (std::size_t row = 0; row < encoder.rows(); ++row) {
    const std::size_t compared = search_row(encoder, row, keys);
    if (verbose && options.line_due(row + 1, encoder.rows()))
      print_line(row + 1, encoder.rows(), compared, encoder.columns());
  }
  return keys;
}

int decompress_only(const Options& options) {
  const auto code =
      read_file(options.compressed).and_then([](const std::string& text) { return fractal::parse_code(text); });
  if (!code) {
    std::println(stderr, "{}: --decompress {}: {}", kProgram, options.compressed, code.error());
    return 2;
  }
  const Image picture = fractal::decompress(*code);
  std::print("{}", fractal::thumbnail(picture, 64));
  return write(options.output, fractal::to_pgm(picture)) ? 0 : 1;
}

int run_sequential(const Options& options) {
  if (!options.compressed.empty()) return decompress_only(options);
  Image image;
  if (!load(options, image)) return 2;
  const auto start = std::chrono::steady_clock::now();
  const Image all = fractal::padded(image, 2 * options.range);
  const std::vector<Key> keys = run_alone(options, all, true);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const bool ok = show(options, image, all, keys);
  std::println("{}: {} code crc={:016x}, 1 rank, sequential, {:.3f} s", kProgram, ok ? "OK" : "FAILED", crc_of(keys),
               took.count());
  return ok ? 0 : 1;
}

class Ring {  // this rank's part of the supersteps
 public:
  Ring(const World& world, const Options& options, const Image& all)
      : world_(world),
        size_(static_cast<std::size_t>(world.size)),
        first_(share(Encoder::domains(all, options.range), static_cast<std::size_t>(world.rank), size_)),
        encoder_(all, options.range, options.flat, first_,
                 share(Encoder::domains(all, options.range), static_cast<std::size_t>(world.rank) + 1, size_) - first_),
        keys_(encoder_.rows() * encoder_.columns(), fractal::kNone),
        received_(encoder_.columns()) {}

  [[nodiscard]] std::uint64_t supersteps() const { return encoder_.rows(); }
  [[nodiscard]] std::size_t ranges() const { return encoder_.columns(); }
  [[nodiscard]] double computing() const { return computing_; }

  // Counts from 1; returns how many ranges this rank compared.
  std::size_t superstep(std::uint64_t s) {
    const auto rank = static_cast<std::size_t>(world_.rank), left = (rank + size_ - 1) % size_;
    const std::size_t row = row_of(rank, s), n = encoder_.columns();
    const double begin = MPI_Wtime();
    const std::size_t compared = search_row(encoder_, row, keys_);
    computing_ += MPI_Wtime() - begin;
    if (size_ > 1) {
      MPI_Sendrecv(&keys_[row * n], static_cast<int>(n), MPI_UINT64_T, static_cast<int>((rank + 1) % size_), kRow,
                   received_.data(), static_cast<int>(n), MPI_UINT64_T, static_cast<int>(left), kRow, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      Key* theirs = &keys_[row_of(left, s) * n];
      for (std::size_t i = 0; i < n; ++i) theirs[i] = std::min(theirs[i], received_[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return compared;
  }

  // On rank 0, after all supersteps: the best of all ranks.
  [[nodiscard]] std::vector<Key> best() const {
    std::vector<Key> all(keys_.size());
    MPI_Reduce(keys_.data(), all.data(), static_cast<int>(keys_.size()), MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
    return all;
  }

 private:
  // Ranks begin in different parts of the picture, in rank order.
  [[nodiscard]] std::size_t row_of(std::size_t rank, std::uint64_t s) const {
    return (share(encoder_.rows(), rank, size_) + s - 1) % encoder_.rows();
  }

  const World& world_;
  std::size_t size_, first_;
  Encoder encoder_;
  std::vector<Key> keys_, received_;
  double computing_ = 0;
};

// Rank 0's picture, broadcast to every rank.
void broadcast(Image& image) {
  std::uint64_t size[2] = {image.width, image.height};
  MPI_Bcast(size, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  image.width = size[0];
  image.height = size[1];
  image.pixels.resize(image.width * image.height);
  MPI_Bcast(image.pixels.data(), static_cast<int>(image.pixels.size()), MPI_UINT8_T, 0, MPI_COMM_WORLD);
}

bool same(const std::vector<Key>& keys, const std::vector<Key>& expected) {
  const auto [one, other] = std::ranges::mismatch(keys, expected);
  if (one == keys.end()) return true;
  std::println(stderr, "{}: range {} differs from the sequential program", kProgram, one - keys.begin());
  return false;
}

int run_rank(const Options& options) {
  const World world;
  Image image;
  if (!apps::all_ranks(!world.first() || load(options, image))) return 2;
  broadcast(image);
  const Image all = fractal::padded(image, 2 * options.range);
  Ring ring(world, options, all);

  const double start = MPI_Wtime();
  for (std::uint64_t s = 1; s <= ring.supersteps(); ++s) {
    const std::size_t compared = ring.superstep(s);
    if (world.first() && options.line_due(s, ring.supersteps()))
      print_line(s, ring.supersteps(), compared, ring.ranges());
  }
  const double took = MPI_Wtime() - start;

  const std::vector<Key> keys = ring.best();
  bool ok = true;
  if (world.first() && options.verify) ok = same(keys, run_alone(options, all, false));
  if (world.first()) ok = show(options, image, all, keys) && ok;

  apps::print_computing(world, kProgram, ring.computing());
  ok = apps::all_ranks(ok);
  if (world.first()) {
    std::println("{}: {} code crc={:016x}, {} supersteps, {}{}, {:.3f} s", kProgram, ok ? "OK" : "FAILED", crc_of(keys),
                 ring.supersteps(), apps::ranks_in_words(world),
                 options.verify ? ", equal to the sequential program" : "", took);
    std::fflush(stdout);
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run<Options>(kProgram, argc, argv, fractal::table, fractal::check, run_sequential, run_rank);
}
