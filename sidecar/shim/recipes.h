// How the program's MPI objects get through the close of an epoch: what each is made of is read from the
// MPI library at the gate (so that nothing is paid before), and made again in the next epoch.
//
// Carried: communicators (group, topology, name, error handler), groups, derived datatypes, operations,
// error handlers, infos, the Bsend buffer. Attributes are ours altogether (attributes.h). Communicators
// are made again in the order in which the program made them: each is collective over its members only,
// and the program's own order was free of deadlock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sidecar/shim/handles.h"

namespace bsp::shim {

struct CommRecipe {
  int topology = MPI_UNDEFINED;
  std::vector<int> dims, periods;                    // MPI_CART
  std::vector<int> index, edges;                     // MPI_GRAPH
  std::vector<int> sources, source_weights;          // MPI_DIST_GRAPH
  std::vector<int> destinations, destination_weights;
  bool weighted = false;
  std::string name;
  bool named = false;
  MPI_Errhandler errhandler = nullptr;  // ours or predefined; nullptr: as created
};

struct TypeRecipe {
  int combiner = 0;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  // Each inner type is predefined (a handle that survives) or a recipe of its own.
  struct Inner {
    MPI_Datatype predefined = nullptr;
    std::unique_ptr<TypeRecipe> derived;
  };
  std::vector<Inner> types;
  std::string name;
};

// Datatypes alone (recipes_datatype.cc).
std::unique_ptr<TypeRecipe> read_type(MPI_Datatype real_type);
MPI_Datatype make_type(const TypeRecipe& recipe);

// Before the session closes: notes every live object's recipe and frees the real object.
void take_objects_down();
// After the next session has opened: makes every object again.
void bring_objects_up();

// The program's Bsend buffer, attached again in each epoch.
struct BsendBuffer {
  void* address = nullptr;
  int size = 0;
};
extern BsendBuffer bsend_buffer;

// Makes the real operation / error handler of an object (also when the program creates it).
int make_real(Op& op);
int make_real(Errhandler& handler);
// Destroys an error handler that neither the program nor a communicator holds any more.
void forget(Errhandler* handler);

}  // namespace bsp::shim
