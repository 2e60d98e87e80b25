#include "options.h"

#include <charconv>
#include <cmath>
#include <format>
#include <string_view>

namespace lbm {
namespace {

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_work_factors(std::string_view text, std::map<int, double>& factors) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    int rank = 0;
    double factor = 0;
    if (equals == std::string_view::npos || !read(pair.substr(0, equals), rank) ||
        !read(pair.substr(equals + 1), factor) || rank < 0 || !(factor >= 1 && factor <= 1e6))
      return false;
    factors[rank] = factor;
  }
  return true;
}

}  // namespace

const char* const kUsage = R"(usage: lattice_boltzmann [options]
  --width N          columns of the channel (256)
  --height N         cells of a column (128)
  --supersteps N     supersteps, each ended by MPI_Barrier (100)
  --substeps N       time steps in a superstep (1)
  --omega X          relaxation rate, between 0 and 2 (1.7)
  --force X          acceleration along the channel (1e-6)
  --work-factor R=F[,R=F...]   rank R does its collisions F times over (F >= 1); the field stays the same
  --ballast MIB      memory each rank carries along and verifies at the end (0)
  --progress K       a line every K supersteps (a tenth of them)
  --output FILE      final field: 9 raw doubles per cell, column by column
  --check            compare with the sequential program bit for bit; exit status 1 if they differ
  --sequential       run without MPI
)";

double Options::work_of(int rank) const {
  const auto found = work_factor.find(rank);
  return found == work_factor.end() ? 1.0 : found->second;
}

std::expected<Options, std::string> parse(std::span<char* const> arguments) {
  Options o;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--check") {
      o.check = true;
      continue;
    }
    if (name == "--sequential") {
      o.sequential = true;
      continue;
    }
    if (name == "--help" || name == "-h") {
      o.help = true;
      continue;
    }
    if (i + 1 == arguments.size() || !name.starts_with("--"))
      return std::unexpected(std::format("{}: unknown option, or its value is missing", name));
    const std::string_view value = arguments[++i];
    bool known = true, good = true;
    if (name == "--width")
      good = read(value, o.channel.width) && o.channel.width > 0;
    else if (name == "--height")
      good = read(value, o.channel.height) && o.channel.height > 1;
    else if (name == "--supersteps")
      good = read(value, o.supersteps) && o.supersteps > 0;
    else if (name == "--substeps")
      good = read(value, o.substeps) && o.substeps > 0;
    else if (name == "--omega")
      good = read(value, o.channel.omega) && o.channel.omega > 0 && o.channel.omega < 2;
    else if (name == "--force")
      good = read(value, o.channel.acceleration) && std::isfinite(o.channel.acceleration);
    else if (name == "--work-factor")
      good = read_work_factors(value, o.work_factor);
    else if (name == "--ballast")
      good = read(value, o.ballast_mib);
    else if (name == "--progress")
      good = read(value, o.progress) && o.progress > 0;
    else if (name == "--output")
      o.output = value;
    else
      known = false;
    if (!known) return std::unexpected(std::format("{}: unknown option", name));
    if (!good) return std::unexpected(std::format("{}: '{}' is not a value it can take", name, value));
  }
  if (o.progress == 0) o.progress = std::max<std::uint64_t>(1, o.supersteps / 10);
  return o;
}

}  // namespace lbm
