#include "sidecar/agent/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ranges>

#include "base/core/build_id.h"
#include "crds/names.h"
#include "crds/wire.h"

namespace bsp::sidecar {
namespace {

std::string variable(std::string_view name, std::string_view otherwise = {}) {
  const char* text = std::getenv(std::string(name).c_str());
  return std::string(text && *text ? std::string_view(text) : otherwise);
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::uint32_t> number(std::string_view name) {
  std::string text = variable(name);
  if (const auto value = number_in(text)) return *value;
  return fail(ErrorCode::kInvalid, std::format("{} must be a number, not \"{}\"", name, text));
}

// "4,5,6": a pod's ranks by seat.
Result<std::vector<std::uint32_t>> seats_in(const std::string& text, std::uint32_t ranks) {
  std::vector<std::uint32_t> seats;
  for (const auto part : std::views::split(text, ',')) {
    const auto rank = number_in(std::string_view(part));
    if (!rank)
      return fail(ErrorCode::kInvalid,
                  std::format("{} must be numbers between commas, not \"{}\"", names::kEnvRank, text));
    if (*rank >= ranks)
      return fail(ErrorCode::kInvalid,
                  std::format("{}={} must be less than {}={}", names::kEnvRank, text, names::kEnvRanks, ranks));
    if (std::ranges::contains(seats, *rank))
      return fail(ErrorCode::kInvalid, std::format("{}={} names rank {} twice", names::kEnvRank, text, *rank));
    seats.push_back(*rank);
  }
  if (seats.size() > wire::kMostSeats)
    return fail(ErrorCode::kInvalid, std::format("{} names {} ranks, a pod has at most {}", names::kEnvRank,
                                                 seats.size(), wire::kMostSeats));
  if (seats.empty()) return fail(ErrorCode::kInvalid, std::format("{} must be the pod's ranks", names::kEnvRank));
  return seats;
}

}  // namespace

storage::Location Config::storage_from_environment() {
  std::error_code missing;  // then there is no such program either
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", missing);
  return {.place = variable(names::kEnvStorage),
          .endpoint = variable(names::kEnvStorageEndpoint),
          .region = variable(names::kEnvStorageRegion),
          .credentials = std::string(names::kStorageCredentials),
          .ca = variable(names::kEnvStorageCa),
          .client = std::filesystem::path(self).replace_filename("libexec/rclone")};
}

Result<Config> Config::from_environment() {
  Config config;
  BSP_TRY(config.ranks, number(names::kEnvRanks));
  BSP_TRY(config.seats, seats_in(variable(names::kEnvRank), config.ranks));
  config.pod = variable(names::kEnvPod);
  if (config.pod.empty()) return fail(ErrorCode::kInvalid, std::format("{} must be the pod's name", names::kEnvPod));
  config.job = variable(names::kEnvJob);
  config.job_uid = variable(names::kEnvJobUid);
  config.listen = variable(names::kEnvListen, std::format("[::]:{}", names::kSidecarPort));
  config.liveness = variable(names::kEnvLiveness);
  config.tls_dir = variable(names::kEnvTlsDir, names::kTlsDir);
  config.run_dir = variable(names::kEnvRunDir, names::kRunDir);
  const auto features = CpuFeatures::of_this_machine_or(variable(names::kEnvCpuFeatures));
  if (!features)
    return fail(ErrorCode::kInvalid, std::format("{} must be names of CPU features between commas, not \"{}\"",
                                                 names::kEnvCpuFeatures, variable(names::kEnvCpuFeatures)));
  config.cpu_features = *features;
  std::error_code missing;  // then there is no such file either
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", missing);
  config.runtime = build_id_of(std::filesystem::path(self).replace_filename("libbspmpi.so"));
  config.storage = storage_from_environment();
  config.without_init = !variable(names::kEnvWithoutInit).empty();
  if (!variable(fencing::kEnvLimit).empty()) {
    BSP_TRY(const std::uint32_t limit, number(fencing::kEnvLimit));
    config.fence_limit = std::chrono::milliseconds(limit);
  }
  return config;
}

std::string Config::own_path(std::string_view name) const { return std::format("{}/sidecar/{}", run_dir, name); }
std::string Config::path(std::string_view name) const { return std::format("{}/{}", run_dir, name); }
std::string Config::seat_dir(std::size_t seat) const {
  return seats.size() == 1 ? run_dir : std::format("{}/seat-{}", run_dir, seat);
}
std::string Config::seat_path(std::size_t seat, std::string_view name) const {
  return std::format("{}/{}", seat_dir(seat), name);
}

}  // namespace bsp::sidecar
