#include "sidecar/agent/config.h"

#include <charconv>
#include <cstdlib>

#include "crds/names.h"

namespace bsp::sidecar {
namespace {

std::string variable(std::string_view name, std::string_view otherwise = {}) {
  const char* text = std::getenv(std::string(name).c_str());
  return std::string(text && *text ? std::string_view(text) : otherwise);
}

Result<std::uint32_t> number(std::string_view name) {
  std::string text = variable(name);
  std::uint32_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(ErrorCode::kInvalid, std::format("{} must be a number, not \"{}\"", name, text));
  return value;
}

}  // namespace

Result<Config> Config::from_environment() {
  Config config;
  BSP_TRY(config.rank, number(names::kEnvRank));
  BSP_TRY(config.ranks, number(names::kEnvRanks));
  if (config.rank >= config.ranks)
    return fail(ErrorCode::kInvalid, std::format("{}={} must be less than {}={}", names::kEnvRank, config.rank,
                                                 names::kEnvRanks, config.ranks));
  config.pod = variable(names::kEnvPod);
  if (config.pod.empty()) return fail(ErrorCode::kInvalid, std::format("{} must be the pod's name", names::kEnvPod));
  config.job = variable(names::kEnvJob);
  config.job_uid = variable(names::kEnvJobUid);
  config.listen = variable(names::kEnvListen, std::format("[::]:{}", names::kSidecarPort));
  config.liveness = variable(names::kEnvLiveness);
  config.tls_dir = variable(names::kEnvTlsDir, names::kTlsDir);
  config.run_dir = variable(names::kEnvRunDir, names::kRunDir);
  config.without_init = !variable(names::kEnvWithoutInit).empty();
  if (!variable(fencing::kEnvLimit).empty()) {
    BSP_TRY(const std::uint32_t limit, number(fencing::kEnvLimit));
    config.fence_limit = std::chrono::milliseconds(limit);
  }
  return config;
}

std::string Config::own_path(std::string_view name) const { return std::format("{}/sidecar/{}", run_dir, name); }
std::string Config::path(std::string_view name) const { return std::format("{}/{}", run_dir, name); }

}  // namespace bsp::sidecar
