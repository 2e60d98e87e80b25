#include "base/core/cpu_features.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <format>

#include "base/core/first_few.h"

namespace bsp {
namespace {

enum Leaf : std::uint8_t { kOne, kSeven, kSevenOne, kExtended, kXsave, kLeaves };
enum Register : std::uint8_t { kA, kB, kC, kD, kRegisters };

// State that the kernel saves: bits of XCR0.
constexpr std::uint64_t kNoState = 0, kAvx = 0x6, kAvx512 = 0xe6, kPkru = 0x200, kTiles = 0x60000;

struct Feature {
  std::string_view name;   // of /proc/cpuinfo
  std::string_view glibc;  // of the tunable glibc.cpu.hwcaps; "": it has none
  Leaf leaf;
  Register in;
  std::uint8_t bit;
  std::uint64_t state = kNoState;
};

// Append only: a feature's place is its bit.
constexpr auto kFeatures = std::to_array<Feature>({
    {"pni", "SSE3", kOne, kC, 0},
    {"ssse3", "SSSE3", kOne, kC, 9},
    {"sse4_1", "SSE4_1", kOne, kC, 19},
    {"sse4_2", "SSE4_2", kOne, kC, 20},
    {"popcnt", "POPCNT", kOne, kC, 23},
    {"cx16", "CMPXCHG16B", kOne, kC, 13},
    {"lahf_lm", "LAHF64_SAHF64", kExtended, kC, 0},
    {"movbe", "MOVBE", kOne, kC, 22},
    {"abm", "LZCNT", kExtended, kC, 5},
    {"bmi1", "BMI1", kSeven, kB, 3},
    {"bmi2", "BMI2", kSeven, kB, 8},
    {"xsave", "OSXSAVE", kOne, kC, 27},
    {"xsavec", "XSAVEC", kXsave, kA, 1},
    {"avx", "AVX", kOne, kC, 28, kAvx},
    {"f16c", "F16C", kOne, kC, 29, kAvx},
    {"fma", "FMA", kOne, kC, 12, kAvx},
    {"avx2", "AVX2", kSeven, kB, 5, kAvx},
    {"fma4", "FMA4", kExtended, kC, 16, kAvx},
    {"xop", "XOP", kExtended, kC, 11, kAvx},
    {"rtm", "RTM", kSeven, kB, 11},
    {"aes", "", kOne, kC, 25},
    {"pclmulqdq", "", kOne, kC, 1},
    {"sha_ni", "", kSeven, kB, 29},
    {"adx", "", kSeven, kB, 19},
    {"rdrand", "", kOne, kC, 30},
    {"rdseed", "", kSeven, kB, 18},
    {"fsgsbase", "", kSeven, kB, 0},
    {"rdtscp", "", kExtended, kD, 27},
    {"gfni", "", kSeven, kC, 8},
    {"vaes", "", kSeven, kC, 9, kAvx},
    {"vpclmulqdq", "", kSeven, kC, 10, kAvx},
    {"avx_vnni", "AVX_VNNI", kSevenOne, kA, 4, kAvx},
    {"avx_ifma", "AVX_IFMA", kSevenOne, kA, 23, kAvx},
    {"avx512f", "AVX512F", kSeven, kB, 16, kAvx512},
    {"avx512dq", "AVX512DQ", kSeven, kB, 17, kAvx512},
    {"avx512cd", "AVX512CD", kSeven, kB, 28, kAvx512},
    {"avx512bw", "AVX512BW", kSeven, kB, 30, kAvx512},
    {"avx512vl", "AVX512VL", kSeven, kB, 31, kAvx512},
    {"avx512ifma", "AVX512_IFMA", kSeven, kB, 21, kAvx512},
    {"avx512vbmi", "AVX512_VBMI", kSeven, kC, 1, kAvx512},
    {"avx512_vbmi2", "AVX512_VBMI2", kSeven, kC, 6, kAvx512},
    {"avx512_vnni", "AVX512_VNNI", kSeven, kC, 11, kAvx512},
    {"avx512_bitalg", "AVX512_BITALG", kSeven, kC, 12, kAvx512},
    {"avx512_vpopcntdq", "AVX512_VPOPCNTDQ", kSeven, kC, 14, kAvx512},
    {"avx512_vp2intersect", "AVX512_VP2INTERSECT", kSeven, kD, 8, kAvx512},
    {"avx512_fp16", "AVX512_FP16", kSeven, kD, 23, kAvx512},
    {"avx512_bf16", "AVX512_BF16", kSevenOne, kA, 5, kAvx512},
    {"amx_tile", "AMX_TILE", kSeven, kD, 24, kTiles},
    {"amx_int8", "AMX_INT8", kSeven, kD, 25, kTiles},
    {"amx_bf16", "AMX_BF16", kSeven, kD, 22, kTiles},
    {"ospke", "", kSeven, kC, 4, kPkru},
});
static_assert(kFeatures.size() <= 64);

constexpr std::uint64_t bit_of(std::string_view name) {
  for (std::size_t i = 0; i < kFeatures.size(); ++i)
    if (kFeatures[i].name == name) return 1ull << i;
  return 0;
}

// What the kernel saves. XGETBV exists where CPUID says that the kernel has set it up.
std::uint64_t xcr0(std::uint32_t leaf_one_c) {
  if ((leaf_one_c & (1u << 27)) == 0) return 0;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

}  // namespace

CpuFeatures CpuFeatures::of_this_machine() {
  std::uint32_t registers[kLeaves][kRegisters] = {};
  constexpr std::pair<std::uint32_t, std::uint32_t> kNumbers[kLeaves] = {
      {1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}, {0xd, 1}};
  for (std::size_t leaf = 0; leaf < kLeaves; ++leaf) {
    auto& [a, b, c, d] = registers[leaf];
    if (leaf == kSevenOne && registers[kSeven][kA] == 0) continue;  // there is no subleaf 1
    __get_cpuid_count(kNumbers[leaf].first, kNumbers[leaf].second, &a, &b, &c, &d);
  }
  const std::uint64_t saved = xcr0(registers[kOne][kC]);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kFeatures.size(); ++i) {
    const Feature& f = kFeatures[i];
    const bool there = (registers[f.leaf][f.in] >> f.bit & 1u) != 0;
    if (there && (saved & f.state) == f.state) bits |= 1ull << i;
  }
  return CpuFeatures(bits);
}

std::optional<CpuFeatures> CpuFeatures::from_names(std::string_view names) {
  std::uint64_t bits = 0;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::uint64_t bit = bit_of(names.substr(0, comma));
    if (bit == 0) return std::nullopt;
    bits |= bit;
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return CpuFeatures(bits);
}

std::optional<CpuFeatures> CpuFeatures::of_this_machine_or(std::string_view instead) {
  return instead.empty() ? of_this_machine() : from_names(instead);
}

bool CpuFeatures::has(std::string_view name) const { return (bits_ & bit_of(name)) != 0; }

std::string CpuFeatures::text() const {
  FirstFew names;
  for (std::size_t i = 0; i < 64; ++i)
    if ((bits_ >> i & 1u) != 0)
      names.add(i < kFeatures.size() ? std::string(kFeatures[i].name) : std::format("feature {}", i));
  return names.text();
}

std::string_view CpuFeatures::level() const {
  static const CpuFeatures v2 = *from_names("pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm");
  static const CpuFeatures v3 = *from_names("movbe,abm,bmi1,bmi2,xsave,avx,f16c,fma,avx2");
  static const CpuFeatures v4 = *from_names("avx512f,avx512dq,avx512cd,avx512bw,avx512vl");
  if (!has_all(v2)) return "x86-64";
  if (!has_all(v3)) return "x86-64-v2";
  return has_all(v4) ? "x86-64-v4" : "x86-64-v3";
}

std::string CpuFeatures::glibc_mask() const {
  std::string mask;
  for (std::size_t i = 0; i < kFeatures.size(); ++i)
    if ((bits_ >> i & 1u) == 0 && !kFeatures[i].glibc.empty())
      mask += std::format("{}-{}", mask.empty() ? "" : ",", kFeatures[i].glibc);
  return mask;
}

}  // namespace bsp
