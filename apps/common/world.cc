#include "apps/common/world.h"

#include <format>
#include <vector>

namespace apps {

World::World() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

bool all_ranks(bool ok) {
  const int mine = ok ? 1 : 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

void broadcast(std::string& text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
}

void print_computing(const World& world, std::string_view program, double seconds) {
  std::vector<double> all(static_cast<std::size_t>(world.size));
  MPI_Gather(&seconds, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (!world.first()) return;
  std::print("{}: computing by rank:", program);
  for (const double rank_seconds : all) std::print(" {:.3f}", rank_seconds);
  std::println(" s");
}

std::string ranks_in_words(const World& world) {
  return std::format("{} rank{}", world.size, world.size == 1 ? "" : "s");
}

OutputFile::OutputFile(std::string_view program, std::string name) : program_(program), name_(std::move(name)) {
  if (name_.empty()) return;
  file_ = std::fopen(name_.c_str(), "wb");
  ok_ = file_ != nullptr;
  if (!ok_) std::perror(std::format("{}: --output {}", program_, name_).c_str());
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (file_ != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) ok_ = false;
}

bool OutputFile::close() {
  if (file_ == nullptr) return ok_;
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed || !ok_) std::println(stderr, "{}: --output {}: incomplete: is the file system full?", program_, name_);
  return closed && ok_;
}

}  // namespace apps
