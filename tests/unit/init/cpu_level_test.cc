// With which CPU features a program starts, and where one that has started can't go.
#include "sidecar/init/cpu_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <format>

#include "sidecar/init/supervisor/moved_program.h"
#include "sidecar/ring/ring.h"

namespace bsp::init {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Environment = std::vector<std::string>;

CpuFeatures named(std::string_view names) { return CpuFeatures::from_names(names).value(); }
const CpuFeatures kAvx2 =
    named("pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm,movbe,abm,bmi1,bmi2,xsave,avx,f16c,fma,avx2");
const CpuFeatures kAvx512 = CpuFeatures(kAvx2.bits() | named("avx512f,avx512dq,avx512cd,avx512bw,avx512vl").bits());

Environment within(CpuFeatures level, Environment env = {}) {
  keep_to_level(level, env);
  return env;
}

TEST(CpuLevel, EachLibraryIsToldInItsOwnVariable) {
  EXPECT_THAT(within(kAvx2), Contains(HasSubstr("GLIBC_TUNABLES=glibc.cpu.hwcaps=-")));
  EXPECT_THAT(within(kAvx2), Contains(HasSubstr("-AVX512F,")));
  EXPECT_THAT(within(kAvx2), Contains("OPENBLAS_CORETYPE=Haswell"));
  EXPECT_THAT(within(kAvx2), Contains("MKL_ENABLE_INSTRUCTIONS=AVX2"));
  EXPECT_THAT(within(kAvx512), Contains("OPENBLAS_CORETYPE=SkylakeX"));
  EXPECT_THAT(within(kAvx512), Contains("MKL_ENABLE_INSTRUCTIONS=AVX512"));
  EXPECT_THAT(within(named("sse4_2,avx")), Contains("OPENBLAS_CORETYPE=Sandybridge"));
  EXPECT_THAT(within(named("sse4_2")), Contains("OPENBLAS_CORETYPE=Nehalem"));
  EXPECT_THAT(within(named("pni")), Contains("MKL_ENABLE_INSTRUCTIONS=SSE4_2"));
  EXPECT_THAT(within(CpuFeatures(~0ull)), testing::Not(Contains(StartsWith("GLIBC_TUNABLES"))));
}

TEST(CpuLevel, WhatTheUserSetStays) {
  const Environment env = within(kAvx2, {"OPENBLAS_CORETYPE=Zen", "MKL_ENABLE_INSTRUCTIONS=SSE4_2", "PATH=/bin"});
  EXPECT_THAT(env, Contains("OPENBLAS_CORETYPE=Zen"));
  EXPECT_THAT(env, Contains("MKL_ENABLE_INSTRUCTIONS=SSE4_2"));
  EXPECT_THAT(env, testing::SizeIs(4));
  const std::string mask = kAvx2.glibc_mask();
  const auto tunables = [](const std::string& own) { return within(kAvx2, {"GLIBC_TUNABLES=" + own}).front(); };
  EXPECT_EQ(tunables("glibc.malloc.check=1"), "GLIBC_TUNABLES=glibc.malloc.check=1:glibc.cpu.hwcaps=" + mask);
  EXPECT_EQ(tunables(""), "GLIBC_TUNABLES=glibc.cpu.hwcaps=" + mask);
  EXPECT_EQ(tunables("glibc.cpu.hwcaps=-ERMS:glibc.malloc.check=1"),
            "GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS," + mask + ":glibc.malloc.check=1");
  EXPECT_EQ(tunables("glibc.cpu.hwcaps="), "GLIBC_TUNABLES=glibc.cpu.hwcaps=" + mask);
}

// The C library itself says which levels it has directories for, so it says what it takes the CPU for.
TEST(CpuLevel, TheCLibraryKeepsToIt) {
  constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
  const auto says = [&](const std::string& before) {
    std::string text;
    FILE* out = ::popen(std::format("{} {} --help", before, kLoader).c_str(), "r");
    char piece[4096];
    for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, out)) > 0;) text.append(piece, n);
    ::pclose(out);
    return text;
  };
  if (CpuFeatures::of_this_machine().level() < "x86-64-v3") GTEST_SKIP() << "this CPU has no more than the level";
  EXPECT_THAT(says(""), HasSubstr("x86-64-v3 (supported"));
  const std::string within_v2 =
      says("env '" + within(named("pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm,xsave,xsavec")).front() + "'");
  EXPECT_THAT(within_v2, HasSubstr("x86-64-v2 (supported"));
  EXPECT_THAT(within_v2, testing::Not(HasSubstr("x86-64-v3 (supported")));
}

MovedProgram moved() {
  return {.version = kMovedVersion, .features = kAvx512.bits(), .runtime = "aabb", .ring = BSP_RING_VERSION};
}
std::string refusal(const MovedProgram& program, CpuFeatures machine, const std::string& runtime = "aabb") {
  const auto checked = check_moved(program, machine, runtime);
  return checked ? "" : checked.error().message;
}

TEST(MovedProgram, IsRefusedByACpuThatLacksWhatItHasSeen) {
  EXPECT_EQ(refusal(moved(), kAvx512), "");
  EXPECT_EQ(refusal(moved(), CpuFeatures(~0ull)), "");
  EXPECT_THAT(refusal(moved(), kAvx2), HasSubstr("CPUFeaturesDiffer: this node's CPU lacks avx512f, avx512dq"));
  MovedProgram common = moved();
  common.features = kAvx2.bits();
  EXPECT_EQ(refusal(common, kAvx2), "") << "wherever it has been since";
  common.features = 0;
  EXPECT_EQ(refusal(common, kAvx2), "") << "an older bsp-init doesn't say";
}

TEST(MovedProgram, IsRefusedByAnotherRuntime) {
  EXPECT_THAT(refusal(moved(), kAvx512, "ccdd"), HasSubstr("RuntimeDiffers: the program runs with libbspmpi.so aabb"));
  EXPECT_EQ(refusal(moved(), kAvx512, ""), "");
}

// Before the copy is restored, so that its source goes on.
TEST(MovedProgram, OfTheVersionBeforeAndAfterIsRefusedByName) {
  for (const int off : {-1, 1}) {
    MovedProgram other = moved();
    other.ring = static_cast<std::uint32_t>(static_cast<int>(BSP_RING_VERSION) + off);
    EXPECT_THAT(refusal(other, kAvx512), HasSubstr("RuntimeDiffers: the checkpoint has version")) << other.ring;
    other = moved();
    other.version = kMovedVersion + off;
    EXPECT_THAT(refusal(other, kAvx512), HasSubstr("RuntimeDiffers: the checkpoint has version")) << other.version;
  }
}

// As a bsp-init of the version before wrote it.
TEST(MovedProgram, OfAnOlderRuntimeIsTaken) {
  const auto packet = control::decode("state version=1 pid=300 uid=1000 gid=1000");
  ASSERT_TRUE(packet);
  EXPECT_EQ(refusal(control::from_packet<MovedProgram>(*packet), kAvx2), "");
}

}  // namespace
}  // namespace bsp::init
