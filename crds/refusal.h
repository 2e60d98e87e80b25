// How libbspmpi.so says that another attempt would end alike: it can't run a program at all, such as one with another MPI, or the program
// has called MPI_Abort. It writes the reason here and ends the program. bsp-init reports the reason with the program's end, so that the
// job isn't tried again.
#pragma once

#include <cstddef>
#include <string_view>

namespace bsp::names {

inline constexpr std::string_view kRefusalFile = "refused";  // in kRunDir
inline constexpr std::size_t kRefusalBytes = 1024;           // at most that many are read

// In the reason, and in the container's termination message, if the program has ended itself by MPI_Abort, and not since MPI had failed.
inline constexpr std::string_view kAborted = "the program called MPI_Abort";

// The same if MPI has failed between two epochs: mostly since another rank was lost, so that another attempt may end well.
inline constexpr std::string_view kEpochFailed = "MPI failed at epoch";

}  // namespace bsp::names
