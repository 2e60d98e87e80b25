// bsp-exchange-study [--out FILE.md] [--sizes 16,32,…] [--repeats N] [--seed N] [--threads N]: writes docs/exchange.md
// and its figure beside it (same name, .svg). Progress goes to stderr. The same arguments produce the same files.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "crds/wire.h"
#include "sim/exchange/study.h"

namespace {

using bsp::ErrorCode;
using bsp::fail;
using bsp::Result;

Result<std::uint64_t> whole_number(std::string_view name, std::string_view text, std::uint64_t low,
                                   std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return fail(ErrorCode::kInvalid,
                std::format("{}: \"{}\" is not a whole number from {} to {}", name, text, low, high));
  return value;
}

// The size on the wire of a rank's report with that many supersteps. The values are typical of a job with supersteps of
// one second.
double report_bytes(std::size_t supersteps) {
  bsp::wire::RankReport report{
      .rank = 12345, .completed = 1000, .epoch = 3, .memory_bytes = 67'108'864, .supersteps = {}};
  for (std::size_t i = 0; i < supersteps; ++i)
    report.supersteps.push_back({.superstep = 991 + i,
                                 .end_ns = 1'763'750'000'123'456'789,
                                 .instructions = 2'345'678'901,
                                 .compute_ns = 987'654'321,
                                 .comm_ns = 12'345'678,
                                 .edge_ns = 1'234'567,
                                 .sent_bytes = 1'048'576,
                                 .recv_bytes = {524'288, 524'288},
                                 .recv_ns = {1'234'567, 2'345'678}});
  return static_cast<double>(nlohmann::json(report).dump().size());
}

struct Arguments {
  std::string out = "docs/exchange.md";
  bsp::sim::exchange::StudyParams params{};
};

Result<Arguments> read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) return fail(ErrorCode::kInvalid, std::format("{} needs a value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--out") {
      arguments.out = value;
    } else if (name == "--seed") {
      BSP_TRY(arguments.params.seed, whole_number(name, value, 0, UINT64_MAX));
    } else if (name == "--repeats") {
      BSP_TRY(const std::uint64_t repeats, whole_number(name, value, 1, 1000));
      arguments.params.repeats = static_cast<std::uint32_t>(repeats);
    } else if (name == "--threads") {
      BSP_TRY(const std::uint64_t threads, whole_number(name, value, 1, 256));
      arguments.params.threads = static_cast<std::uint32_t>(threads);
    } else if (name == "--sizes") {
      arguments.params.sizes.clear();
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t comma = std::min(value.find(',', at), value.size());
        BSP_TRY(const std::uint64_t size, whole_number(name, value.substr(at, comma - at), 2, 4096));
        arguments.params.sizes.push_back(static_cast<std::uint32_t>(size));
        at = comma + 1;
      }
    } else {
      return fail(ErrorCode::kInvalid,
                  std::format("unknown option {}; options: --out, --sizes, --repeats, --seed, --threads", name));
    }
  }
  std::ranges::sort(arguments.params.sizes);
  return arguments;
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return bsp::fail_errno("writing " + path.string());
  return {};
}

Result<void> study(int argc, char** argv) {
  BSP_TRY(Arguments arguments, read_arguments(argc, argv));
  const double none = report_bytes(0);
  arguments.params.gather.report_bytes = none;
  arguments.params.report_superstep_bytes = (report_bytes(10) - none) / 10;
  std::string command = "bsp-exchange-study";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  const std::filesystem::path out = arguments.out;
  std::filesystem::path picture = out;
  picture.replace_extension(".svg");
  const auto result = bsp::sim::exchange::run_study(arguments.params, command, picture.filename().string());
  BSP_CHECK_OK(write_file(out, result.markdown));
  return write_file(picture, result.picture);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::puts(
        "usage: bsp-exchange-study [--out docs/exchange.md] [--sizes 16,64,…] [--repeats N] [--seed N] [--threads N]");
    return 0;
  }
  if (const auto result = study(argc, argv); !result) {
    std::fputs(std::format("bsp-exchange-study: {}\n", result.error().message).c_str(), stderr);
    return 1;
  }
  return 0;
}
