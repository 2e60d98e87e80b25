// Device and inode number of the files that are open while a rank moves. CRIU opens them again by their names, and on another machine they
// have other numbers. By these a program tells whether two names are one file, and HDF5 whether a file is open already. So the shim shows
// each the numbers that it had before, for its descriptor and for its name; and a file that has these numbers on the new machine by chance
// it shows as one of another device.
#pragma once

#include <cstdint>

namespace bsp::shim {

// Which file a path leads to.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

void identities_before_stop();
void identities_after_stop();

}  // namespace bsp::shim
