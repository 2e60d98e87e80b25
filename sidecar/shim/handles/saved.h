// What an object consists of while no epoch is open: its recipe (recipes.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/shim/library/real.h"

namespace bsp::shim {

using InfoRecipe = std::vector<std::pair<std::string, std::string>>;

struct CommRecipe {
  std::vector<int> local;  // an intercommunicator's own side, world ranks
  int topology = MPI_UNDEFINED;
  std::vector<int> dims, periods;            // MPI_CART
  std::vector<int> index, edges;             // MPI_GRAPH
  std::vector<int> sources, source_weights;  // MPI_DIST_GRAPH
  std::vector<int> destinations, destination_weights;
  bool weighted = false;
  std::string name;
  InfoRecipe hints;
  MPI_Errhandler errhandler = nullptr;  // virtual or predefined; nullptr: as created
};

struct WinRecipe {
  std::string name;
  InfoRecipe hints;
  MPI_Errhandler errhandler = nullptr;  // virtual or predefined
};

struct FileRecipe {
  MPI_Offset displacement = 0;
  std::string representation;
  MPI_Offset position = -1;         // individual pointer, in etypes of the view; < 0: there is none
  MPI_Offset shared_position = -1;  // shared pointer; < 0: this rank doesn't know of another place than the beginning
  bool atomic = false;
  InfoRecipe hints;
  MPI_Errhandler errhandler = nullptr;  // virtual or predefined
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

}  // namespace bsp::shim
