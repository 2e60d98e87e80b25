// The features of an x86-64 CPU by which libraries select code, as a set.
//
// glibc (IFUNC variants, glibc-hwcaps), libgcc (__builtin_cpu_supports), OpenBLAS, MKL and OpenSSL ask the CPU once, when a
// process starts or loads them, and then call what they have chosen. So a process can run only on a CPU that has every
// feature of the one on which it chose. A feature counts if CPUID has it and, where it has registers of its own, the
// kernel saves them (XCR0), since those libraries require both. Features that make code faster, but whose instructions every
// CPU executes (ERMS, FSRM), aren't in the set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bsp {

class CpuFeatures {
 public:
  constexpr CpuFeatures() = default;
  // A set's bits are its form between processes: a feature keeps its bit, and new ones get new bits.
  constexpr explicit CpuFeatures(std::uint64_t bits) : bits_(bits) {}
  static CpuFeatures of_this_machine();
  // The same, unless `instead` (tests) names others. nullopt: it does, and one isn't known.
  static std::optional<CpuFeatures> of_this_machine_or(std::string_view instead);
  // Names between commas, as /proc/cpuinfo has them: "ssse3,avx,avx2". nullopt: one isn't known.
  static std::optional<CpuFeatures> from_names(std::string_view names);

  // Every x86-64 CPU has some, so an empty set is that of a machine of which nothing is known.
  [[nodiscard]] constexpr bool known() const { return bits_ != 0; }
  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] constexpr bool has_all(CpuFeatures others) const { return (others.bits_ & ~bits_) == 0; }
  [[nodiscard]] constexpr CpuFeatures without(CpuFeatures others) const { return CpuFeatures(bits_ & ~others.bits_); }
  [[nodiscard]] constexpr CpuFeatures and_in(CpuFeatures others) const { return CpuFeatures(bits_ & others.bits_); }
  // What a machine with this set lacks for a process that has seen `seen`. Empty where either isn't known.
  [[nodiscard]] constexpr CpuFeatures lacks(CpuFeatures seen) const {
    return known() ? seen.without(*this) : CpuFeatures();
  }

  // "avx512f, avx512bw": the first eight, then how many more. A bit of a newer version is "feature 61".
  [[nodiscard]] std::string text() const;
  // The psABI's level, which people know: "x86-64-v3". "x86-64" is the lowest.
  [[nodiscard]] std::string_view level() const;
  // glibc's names (tunable glibc.cpu.hwcaps) of the features that this set lacks: "-AVX2,-AVX512F".
  [[nodiscard]] std::string glibc_mask() const;

  constexpr bool operator==(const CpuFeatures&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace bsp
