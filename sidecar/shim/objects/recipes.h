// How the program's MPI objects survive the close of an epoch. At the gate, the shim queries the MPI library for what
// each object consists of (so there is no cost before), and recreates it in the next epoch.
//
// Carried: communicators (groups, topology, name, error handler, hints), groups, derived datatypes, operations, error
// handlers, infos, persistent requests (persistent.cc), windows (windows.h), files (files.h), added error codes (error_codes.h), the
// Bsend buffer. The shim implements attributes itself (attributes.h). Communicators are recreated in the order of numbers that their ranks
// have agreed on: creation is collective over a communicator's members only, and the order in which the program
// created them may differ between ranks if threads did it, or MPI_Comm_idup.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/handles/saved.h"

namespace bsp::shim {

InfoRecipe read_info(MPI_Info real_info);
MPI_Info make_info(const InfoRecipe& recipe);
// Hints given at creation and then changed: `now` is info that MPI has just returned.
InfoRecipe replaced_by(InfoRecipe given, MPI_Info now);
template <class Handle>
InfoRecipe current_hints(const InfoRecipe& given, Handle object, int (*get_info)(Handle, MPI_Info*)) {
  MPI_Info now = nullptr;
  return get_info(object, &now) == MPI_SUCCESS ? replaced_by(given, now) : given;
}

// Windows or files, in an order that is the same on all ranks.
template <class T>
std::vector<T*> in_order(const Pool<T>& pool) {
  std::vector<T*> all = pool.live();
  std::ranges::sort(all, {}, &T::id);
  return all;
}

// Communicators (recipes_comm.cc): saved to a recipe, restored from the recipe in a Comm.
void read_comm(const Comm& comm, CommRecipe& recipe);
void make_comm(Comm& comm);
// Restores everything but the communicator itself: world and self are created with the epoch.
void restore_comm_settings(Comm& comm);
// A new communicator of these ranks. Collective over them.
MPI_Comm comm_of_ranks(const std::vector<int>& world_ranks);
// Adds up to 0 over all ranks if each of `ranks` contributes the same number.
std::int64_t share_of_object(const std::vector<int>& ranks, std::int64_t number);
// A number for a new window or file of this communicator, the same on all its ranks and unique to it. Collective.
std::int64_t agree_on_id(const Comm& comm, std::uint64_t seq);
// The program's handle of an error handler that MPI has just returned.
MPI_Errhandler keep_errhandler(MPI_Errhandler returned);

// Datatypes (recipes_datatype.cc).
std::unique_ptr<TypeRecipe> read_type(MPI_Datatype real_type);
MPI_Datatype make_type(const TypeRecipe& recipe);

// At the gate: the sum over all ranks is 0 if every communicator is live on all its ranks. A rank may have freed one that another
// still uses: both are in the same superstep, as MPI_Comm_free waits for no rank.
std::int64_t share_of_communicators();

// At the gate: the sum over all ranks is 0 if all ranks of every communicator have begun as many collectives on it, and
// have the same persistent ones and have started each as often. Otherwise a message may be in flight, and the next epoch
// would count its collectives from a different one on each rank.
std::int64_t share_of_collectives();

// At the gate: numbers the communicators created since the last one. Collective over all ranks.
void agree_on_ids();

// Before the session closes: saves every live object's recipe and frees the real object.
void save_objects();
// Then: peers of which nothing of the program's has any.
void forget_unused_peers();
// After the next session has opened: recreates every object but windows, files and requests (restore_requests()).
void restore_objects();
// After MPI_Finalize: infos may be used at any time (MPI 4.1, 11.4.1).
void restore_infos();

// The program's Bsend buffer, attached again in each epoch.
struct BsendBuffer {
  void* address = nullptr;
  int size = 0;
};
extern BsendBuffer bsend_buffer;

// Creates the real operation or error handler of an object (also when the program creates it).
int make_real(Op& op);
int make_real(Errhandler& handler);
// Arguments are MPI's own handles.
int make_real(const Win& window, MPI_Info info, MPI_Comm comm, MPI_Win* made);
// Whether the Fortran bindings have marked the operation as a Fortran function (fortran.h).
void note_language(Op& op);
// Destroys an error handler that neither the program nor a communicator holds any more.
void forget(Errhandler* handler);

}  // namespace bsp::shim
