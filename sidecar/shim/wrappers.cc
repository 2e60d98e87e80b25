#include "sidecar/shim/wrappers.h"

namespace bsp::shim {
namespace {

struct Degrees {
  int in = 0;
  int out = 0;
};

Degrees degrees(MPI_Comm handle) {
  Degrees d;
  const MPI_Comm comm = to_real(handle);
  int topology = MPI_UNDEFINED;
  real.Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    int dims = 0;
    real.Cartdim_get(comm, &dims);
    d.in = d.out = 2 * dims;
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    real.Comm_rank(comm, &rank);
    real.Graph_neighbors_count(comm, rank, &d.in);
    d.out = d.in;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    real.Dist_graph_neighbors_count(comm, &d.in, &d.out, &weighted);
  }
  return d;
}

}  // namespace

int indegree(MPI_Comm comm) { return degrees(comm).in; }
int outdegree(MPI_Comm comm) { return degrees(comm).out; }

void keep_types(Request& request, std::vector<MPI_Datatype> types) {
  if (!request.types) request.types = std::make_unique<std::vector<std::vector<MPI_Datatype>>>();
  request.types->push_back(std::move(types));  // the inner array itself doesn't move
}

}  // namespace bsp::shim
