// How libbspmpi.so says that it can't run a program at all, such as one with another MPI: it writes the reason here and
// ends the program. bsp-init reports the reason with the program's end, so that the job isn't tried again.
#pragma once

#include <cstddef>
#include <string_view>

namespace bsp::names {

inline constexpr std::string_view kRefusalFile = "refused";  // in kRunDir
inline constexpr std::size_t kRefusalBytes = 1024;           // at most that many are read

}  // namespace bsp::names
