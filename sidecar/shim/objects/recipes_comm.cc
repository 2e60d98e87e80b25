// Communicators: what each consists of, and how it is recreated.
//
// An intracommunicator consists of its group, an intercommunicator of its two groups; topology, name, error handler
// and hints are added to it. How the program created it (dup, split, merge, ...) doesn't matter.
#include <algorithm>

#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

constexpr int kLeadersTag = 0;  // of the messages between the two leaders of an intercommunicator

std::size_t size_of(int n) { return n > 0 ? static_cast<std::size_t>(n) : 0; }

// Even of no element MPI expects an array.
int* array_of(const std::vector<int>& values) {
  static int none = 0;
  return values.empty() ? &none : const_cast<int*>(values.data());
}

void read_topology(MPI_Comm comm, CommRecipe& recipe) {
  real.Topo_test(comm, &recipe.topology);
  if (recipe.topology == MPI_CART) {
    int dims = 0;
    real.Cartdim_get(comm, &dims);
    recipe.dims.resize(size_of(dims));
    recipe.periods.resize(size_of(dims));
    std::vector<int> coords(size_of(dims));
    real.Cart_get(comm, dims, array_of(recipe.dims), array_of(recipe.periods), array_of(coords));
  } else if (recipe.topology == MPI_GRAPH) {
    int nodes = 0;
    int edges = 0;
    real.Graphdims_get(comm, &nodes, &edges);
    recipe.index.resize(size_of(nodes));
    recipe.edges.resize(size_of(edges));
    real.Graph_get(comm, nodes, edges, array_of(recipe.index), array_of(recipe.edges));
  } else if (recipe.topology == MPI_DIST_GRAPH) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    real.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    recipe.weighted = weighted != 0;
    recipe.sources.resize(size_of(in));
    recipe.source_weights.resize(size_of(in), 1);
    recipe.destinations.resize(size_of(out));
    recipe.destination_weights.resize(size_of(out), 1);
    real.Dist_graph_neighbors(comm, in, array_of(recipe.sources), array_of(recipe.source_weights), out,
                              array_of(recipe.destinations), array_of(recipe.destination_weights));
  }
}

int* weights(const CommRecipe& recipe, const std::vector<int>& values) {
  if (!recipe.weighted) return MPI_UNWEIGHTED;
  return values.empty() ? MPI_WEIGHTS_EMPTY : const_cast<int*>(values.data());
}

MPI_Comm with_topology(MPI_Comm plain, const CommRecipe& recipe) {
  MPI_Comm made = plain;
  if (recipe.topology == MPI_CART) {
    must(real.Cart_create(plain, static_cast<int>(recipe.dims.size()), array_of(recipe.dims), array_of(recipe.periods),
                          0, &made),
         "recreating a Cartesian communicator");
  } else if (recipe.topology == MPI_GRAPH) {
    must(real.Graph_create(plain, static_cast<int>(recipe.index.size()), array_of(recipe.index), array_of(recipe.edges),
                           0, &made),
         "recreating a graph communicator");
  } else if (recipe.topology == MPI_DIST_GRAPH) {
    must(real.Dist_graph_create_adjacent(plain, static_cast<int>(recipe.sources.size()), array_of(recipe.sources),
                                         weights(recipe, recipe.source_weights),
                                         static_cast<int>(recipe.destinations.size()), array_of(recipe.destinations),
                                         weights(recipe, recipe.destination_weights), pre.info_null, 0, &made),
         "recreating a distributed graph communicator");
  }
  if (made != plain) real.Comm_free(&plain);
  return made;
}

// FNV-1a; 31 bits, so that sums of many don't overflow.
std::int64_t hash_of(const std::vector<int>& ranks, std::int64_t number) {
  std::uint64_t hash = 14695981039346656037U;
  const auto mix = [&](std::int64_t value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211U; };
  mix(number);
  for (const int rank : ranks) mix(rank);
  return static_cast<std::int64_t>(hash >> 33);
}

}  // namespace

MPI_Comm comm_of_ranks(const std::vector<int>& world_ranks) {
  MPI_Group world_group = nullptr;
  MPI_Group group = nullptr;
  MPI_Comm made = nullptr;
  real.Comm_group(private_world, &world_group);
  real.Group_incl(world_group, static_cast<int>(world_ranks.size()), world_ranks.data(), &group);
  must(real.Comm_create_group(private_world, group, 0, &made), "recreating a communicator");
  real.Group_free(&group);
  real.Group_free(&world_group);
  return made;
}

// The first of n ranks adds what the n - 1 others take away.
std::int64_t share_of_object(const std::vector<int>& ranks, std::int64_t number) {
  if (ranks.empty()) return 0;
  const std::int64_t hash = hash_of(ranks, number);
  return ranks.front() == state.rank ? hash * (static_cast<std::int64_t>(ranks.size()) - 1) : -hash;
}

// The first rank's number and its count of objects, which make it unique; the others get it by a broadcast.
std::int64_t agree_on_id(const Comm& comm, std::uint64_t seq) {
  constexpr int kBitsOfSeq = 40;
  std::int64_t id = (static_cast<std::int64_t>(state.rank) << kBitsOfSeq) + static_cast<std::int64_t>(seq);
  if (comm.peers->world.size() > 1) must(real.Bcast(&id, 1, pre.int64, 0, comm.real), "numbering a window or file");
  return id;
}

namespace {

std::int64_t share_of_comm(const Comm& comm, std::uint64_t number) {
  return share_of_object(all_ranks(comm), static_cast<std::int64_t>(number));
}

}  // namespace

std::int64_t share_of_communicators() {
  std::int64_t sum = 0;
  for (const Comm* comm : comms.live()) sum += share_of_comm(*comm, comm->origin);
  return sum;
}

std::int64_t share_of_collectives() {
  std::int64_t sum = share_of_comm(world, origin_on(world));
  for (const Comm* comm : comms.live()) sum += share_of_comm(*comm, origin_on(*comm));
  for (const Request* r = youngest_request(); r != nullptr; r = r->next)
    if (r->recipe != nullptr && r->kind == RequestKind::kCollective)
      sum += share_of_comm(*r->recipe->comm, combined(r->origin, r->starts));
  return sum;
}

MPI_Errhandler keep_errhandler(MPI_Errhandler returned) {
  Errhandler* known = errhandlers.find(returned);
  if (known == nullptr) return returned;
  known->used = true;
  real.Errhandler_free(&returned);
  return reinterpret_cast<MPI_Errhandler>(known);
}

// The number is the lowest that any of its ranks proposes. All reductions run concurrently, so the order in which a
// rank starts them doesn't matter. The ranks of an intercommunicator first get the lowest of the other side, then of
// their own.
void agree_on_ids() {
  constexpr int kBitsOfSeq = 40;
  std::vector<Comm*> fresh = comms.live();
  std::erase_if(fresh, [](const Comm* comm) { return comm->id != 0; });
  std::vector<std::int64_t> mine;
  for (const Comm* comm : fresh)
    mine.push_back((static_cast<std::int64_t>(state.rank) << kBitsOfSeq) + static_cast<std::int64_t>(comm->seq));
  const auto lowest = [&](const std::vector<std::int64_t>& given) {
    std::vector<std::int64_t> found(given.size());
    std::vector<MPI_Request> requests(given.size(), pre.request_null);
    for (std::size_t i = 0; i < given.size(); ++i)
      must(real.Iallreduce(&given[i], &found[i], 1, pre.int64, pre.min, fresh[i]->real, &requests[i]),
           "numbering a communicator");
    must(real.Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
         "numbering the communicators");
    return found;
  };
  const std::vector<std::int64_t> others = lowest(mine);
  const std::vector<std::int64_t> own = lowest(others);
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i]->id = std::min(own[i], others[i]);
}

void read_comm(const Comm& comm, CommRecipe& recipe) {
  read_topology(comm.real, recipe);
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  real.Comm_get_name(comm.real, name, &length);
  recipe.name.assign(name, size_of(length));
  if (comm.inter) {
    MPI_Group local = nullptr;
    real.Comm_group(comm.real, &local);
    recipe.local = world_ranks(local);
    real.Group_free(&local);
  }
  MPI_Info hints = nullptr;
  if (real.Comm_get_info(comm.real, &hints) == MPI_SUCCESS) {
    recipe.hints = read_info(hints);
    real.Info_free(&hints);
  }
  MPI_Errhandler handler = nullptr;
  real.Comm_get_errhandler(comm.real, &handler);
  recipe.errhandler = keep_errhandler(handler);
}

void restore_comm_settings(Comm& comm) {
  const CommRecipe& recipe = *comm.recipe;
  real.Comm_set_name(comm.real, recipe.name.c_str());
  if (recipe.errhandler != nullptr) real.Comm_set_errhandler(comm.real, to_real(recipe.errhandler));
  if (!recipe.hints.empty()) {
    MPI_Info hints = make_info(recipe.hints);
    real.Comm_set_info(comm.real, hints);
    real.Info_free(&hints);
  }
  comm.recipe.reset();
}

void make_comm(Comm& comm) {
  if (comm.inter) {
    MPI_Comm local = comm_of_ranks(comm.recipe->local);
    must(real.Intercomm_create(local, 0, private_world, comm.peers->world[0], kLeadersTag, &comm.real),
         "recreating an intercommunicator");
    real.Comm_free(&local);
  } else {
    comm.real = with_topology(comm_of_ranks(comm.peers->world), *comm.recipe);
  }
  restore_comm_settings(comm);
}

}  // namespace bsp::shim
