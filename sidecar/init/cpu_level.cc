#include "sidecar/init/cpu_level.h"

#include <algorithm>
#include <string_view>

namespace bsp::init {
namespace {

std::string* find(std::vector<std::string>& env, std::string_view name) {
  const auto entry = std::ranges::find_if(env, [&](const std::string& e) {
    return e.starts_with(name) && e.size() > name.size() && e[name.size()] == '=';
  });
  return entry == env.end() ? nullptr : &*entry;
}

void set_default(std::vector<std::string>& env, std::string_view name, std::string_view value) {
  if (!find(env, name)) env.push_back(std::string(name).append("=").append(value));
}

// What the user has set stays, and comes first: of a name that occurs twice in the list, the last one counts.
void mask_in_glibc(const std::string& mask, std::vector<std::string>& env) {
  constexpr std::string_view kTunables = "GLIBC_TUNABLES", kHwcaps = "glibc.cpu.hwcaps=";
  std::string* tunables = find(env, kTunables);
  if (!tunables) {
    env.push_back(std::string(kTunables).append("=").append(kHwcaps).append(mask));
    return;
  }
  const std::size_t own = tunables->find(kHwcaps);
  if (own == std::string::npos) {
    tunables->append(tunables->ends_with('=') ? "" : ":").append(kHwcaps).append(mask);
    return;
  }
  const std::size_t end = std::min(tunables->find(':', own), tunables->size());
  tunables->insert(end, (end == own + kHwcaps.size() ? "" : ",") + mask);
}

}  // namespace

void keep_to_level(CpuFeatures level, std::vector<std::string>& env) {
  if (const std::string mask = level.glibc_mask(); !mask.empty()) mask_in_glibc(mask, env);
  const auto has = [&](std::string_view names) { return level.has_all(*CpuFeatures::from_names(names)); };
  const bool avx512 = has("avx2,fma,avx512f,avx512dq,avx512cd,avx512bw,avx512vl");
  const bool avx2 = has("avx2,fma"), avx = has("avx"), sse4_2 = has("sse4_2");
  set_default(env, "OPENBLAS_CORETYPE",
              avx512   ? "SkylakeX"
              : avx2   ? "Haswell"
              : avx    ? "Sandybridge"
              : sse4_2 ? "Nehalem"
                       : "Prescott");
  set_default(env, "MKL_ENABLE_INSTRUCTIONS", avx512 ? "AVX512" : avx2 ? "AVX2" : avx ? "AVX" : "SSE4_2");
}

}  // namespace bsp::init
