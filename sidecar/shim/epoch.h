// An MPI epoch: one MPI session in one PMIx namespace. What the program sees as one run of MPI from
// MPI_Init to MPI_Finalize is a row of epochs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bsp::shim {

// /run/bsp/epoch, written by the sidecar: see "The epoch descriptor" in crds/names.h.
struct EpochDescriptor {
  std::uint64_t epoch = 0;
  int rank = -1;
  int ranks = 0;
  std::vector<std::uint32_t> sets;          // Set number of each rank
  std::map<std::string, std::string> pmix;  // PMIX_* variables
};

// True if this process was started by bsp-init (or a test): its run directory exists.
bool has_run_dir();

// False if there is no descriptor yet, or not a complete one.
bool read_descriptor(EpochDescriptor& out);

// Waits for the first epoch, then opens it; ends the process with a message when none comes in time.
void open_first_epoch(int thread_level);

// Opens the session of `descriptor` and makes world and self.
void open_epoch(const EpochDescriptor& descriptor);
// Closes it: no socket and no descriptor of MPI's is left. World, self and all else must be freed.
void close_epoch();

// The ring is mapped while an epoch is open, and to the end after the last one.
void map_ring();
void unmap_ring();

}  // namespace bsp::shim
