#include "base/core/cpu_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/core/build_id.h"

namespace bsp {
namespace {

CpuFeatures named(std::string_view names) { return CpuFeatures::from_names(names).value(); }

constexpr std::string_view kV3 =
    "pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm,movbe,abm,bmi1,bmi2,xsave,avx,f16c,fma,avx2";

// The kernel's own list, which it makes from CPUID and from what it saves (XCR0), is another program's word on the same.
TEST(CpuFeatures, OfThisMachineAreThoseThatTheKernelNames) {
  std::set<std::string> flags;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  ASSERT_TRUE(flags.contains("sse2")) << "not an x86-64 machine";
  const CpuFeatures machine = CpuFeatures::of_this_machine();
  ASSERT_TRUE(machine.known());
  for (const char* name :
       {"pni",      "ssse3",     "sse4_1",      "sse4_2", "popcnt", "cx16",    "lahf_lm",  "movbe",
        "abm",      "bmi1",      "bmi2",        "xsave",  "avx",    "f16c",    "fma",      "avx2",
        "aes",      "pclmulqdq", "adx",         "rdrand", "rdseed", "avx512f", "avx512dq", "avx512cd",
        "avx512bw", "avx512vl",  "avx512_vnni", "vaes",   "gfni",   "rdtscp"})
    EXPECT_EQ(machine.has(name), flags.contains(name)) << name;
}

TEST(CpuFeatures, AreComparedAsSets) {
  const CpuFeatures small = named("pni,avx"), large = named("pni,avx,avx2");
  EXPECT_TRUE(large.has_all(small));
  EXPECT_FALSE(small.has_all(large));
  EXPECT_EQ(small.lacks(large), named("avx2"));
  EXPECT_FALSE(large.lacks(small).known()) << "more than was seen does no harm";
  EXPECT_FALSE(CpuFeatures().lacks(large).known()) << "of which nothing is known, nothing is said";
  EXPECT_FALSE(small.lacks(CpuFeatures()).known());
  EXPECT_EQ(large.and_in(small), small);
  EXPECT_EQ(CpuFeatures(small.bits()), small);
}

TEST(CpuFeatures, AreNamedAsPeopleKnowThem) {
  EXPECT_EQ(named("avx512f,avx512bw").text(), "avx512f, avx512bw");
  EXPECT_THAT(CpuFeatures(~0ull).text(), testing::HasSubstr("and 56 more"));
  EXPECT_EQ(CpuFeatures(1ull << 63).text(), "feature 63") << "of a newer version";
  EXPECT_FALSE(CpuFeatures::from_names("avx,avx3"));
  EXPECT_FALSE(CpuFeatures::from_names("avx,,avx2"));
  EXPECT_EQ(named("").bits(), 0u);
  EXPECT_EQ(CpuFeatures::of_this_machine_or("avx"), named("avx"));
  EXPECT_EQ(CpuFeatures::of_this_machine_or(""), CpuFeatures::of_this_machine());
  EXPECT_EQ(named("avx2").level(), "x86-64");
  EXPECT_EQ(named("pni,ssse3,sse4_1,sse4_2,popcnt,cx16,lahf_lm,avx").level(), "x86-64-v2");
  EXPECT_EQ(named(kV3).level(), "x86-64-v3");
  EXPECT_EQ(CpuFeatures(~0ull).level(), "x86-64-v4");
}

TEST(CpuFeatures, GlibcIsToldWhatIsLacking) {
  const std::string mask = named(kV3).glibc_mask();
  EXPECT_THAT(mask, testing::HasSubstr("-AVX512F,-AVX512DQ"));
  EXPECT_THAT(mask, testing::HasSubstr("-RTM"));
  EXPECT_THAT(mask, testing::Not(testing::HasSubstr("-AVX2")));
  EXPECT_THAT(mask, testing::Not(testing::HasSubstr("-,")));
  EXPECT_EQ(CpuFeatures(~0ull).glibc_mask(), "");
}

TEST(BuildId, IsTheLinkersOrNone) {
  const std::string own = build_id_of("/proc/self/exe");
  EXPECT_EQ(own.size() % 2, 0u);
  EXPECT_EQ(own.find_first_not_of("0123456789abcdef"), std::string::npos) << own;
  EXPECT_NE(build_id_of("/lib/x86_64-linux-gnu/libc.so.6"), "");
  EXPECT_NE(build_id_of("/lib/x86_64-linux-gnu/libc.so.6"), own);
  for (const char* file : {"/no-such-file", "/etc/passwd", "/proc/self/cmdline", "/", "/dev/null"})
    EXPECT_EQ(build_id_of(file), "") << file;
}

}  // namespace
}  // namespace bsp
