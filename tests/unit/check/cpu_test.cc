#include "operator/check/cpu.h"

#include <gmock/gmock.h>

namespace bsp::checking {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kSecond = "fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 ";
constexpr const char* kThird = "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave ";

TEST(Cpu, LevelIsTheHighestThatIsComplete) {
  EXPECT_EQ(cpu_of("fpu sse sse2").level, 1);
  EXPECT_EQ(cpu_of(kSecond).level, 2);
  EXPECT_EQ(cpu_of(std::string(kSecond) + kThird).level, 3);
  EXPECT_EQ(cpu_of(std::string(kSecond) + kThird + "avx512f avx512bw avx512cd avx512dq avx512vl").level, 4);
  EXPECT_EQ(cpu_of(std::string(kSecond) + "avx512f avx512bw avx512cd avx512dq avx512vl").level, 2)
      << "without the third";
}

TEST(Cpu, FeaturesBeyondTheLevel) {
  EXPECT_THAT(cpu_of(std::string(kSecond) + kThird).features, IsEmpty());
  EXPECT_THAT(cpu_of(std::string(kSecond) + "vmx erms avx aes").features, ElementsAre("aes", "avx", "erms"));
}

TEST(Cpu, NoFlags) {
  EXPECT_EQ(cpu_of("").level, 1);
  EXPECT_THAT(cpu_of("").features, IsEmpty());
}

}  // namespace
}  // namespace bsp::checking
