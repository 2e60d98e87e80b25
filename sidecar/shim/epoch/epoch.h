// An MPI epoch: one MPI session in one PMIx namespace. What the program sees as one run of MPI from MPI_Init to
// MPI_Finalize is a sequence of epochs.
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
  std::vector<int> local_ranks;             // those of this pod, ascending; empty: this one alone
  std::vector<std::uint32_t> sets;          // Set number of each rank
  std::map<std::string, std::string> pmix;  // PMIX_* variables
};

// False if there is no complete descriptor yet. Exits with a message if there is one that can't be read for a while.
bool read_descriptor(EpochDescriptor& out);

// Waits for the first epoch and opens it; exits with a message on timeout.
void open_first_epoch(int thread_level);

// Opens the session of `descriptor` and creates world and self.
void open_epoch(const EpochDescriptor& descriptor);
// Closes the session; leaves no MPI socket or descriptor open. All objects, including world and self, must be freed
// first.
void close_epoch();

// Whether a world rank is another one of this pod that won't be with this one in the next epoch. At a committed gate.
bool parts_from(int rank);

// The ring is mapped while an epoch is open, and after the last epoch until exit.
void map_ring();
void unmap_ring();

}  // namespace bsp::shim
