#include "sidecar/shim/recipes.h"

#include <algorithm>
#include <numeric>

#include "sidecar/shim/message.h"
#include "sidecar/shim/state.h"

namespace bsp::shim {

BsendBuffer bsend_buffer;

namespace {

std::size_t size_of(int n) { return n > 0 ? static_cast<std::size_t>(n) : 0; }

void must(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  real.Error_string(rc, text, &length);
  die("epoch %llu: %s: %s", static_cast<unsigned long long>(state.epoch), what, text);
}

std::vector<int> world_ranks_of(MPI_Group group, bool& foreign) {
  int size = 0;
  real.Group_size(group, &size);
  std::vector<int> from(size_of(size));
  std::iota(from.begin(), from.end(), 0);
  std::vector<int> to(size_of(size));
  MPI_Group world_group = nullptr;
  real.Comm_group(world.real, &world_group);
  real.Group_translate_ranks(group, size, from.data(), world_group, to.data());
  real.Group_free(&world_group);
  foreign = std::any_of(to.begin(), to.end(), [](int rank) { return rank < 0; });
  return to;
}

// --- Communicators -------------------------------------------------------------------------------

void read_topology(MPI_Comm comm, CommRecipe& recipe) {
  real.Topo_test(comm, &recipe.topology);
  if (recipe.topology == MPI_CART) {
    int dims = 0;
    real.Cartdim_get(comm, &dims);
    recipe.dims.resize(size_of(dims));
    recipe.periods.resize(size_of(dims));
    std::vector<int> coords(size_of(dims));
    real.Cart_get(comm, dims, recipe.dims.data(), recipe.periods.data(), coords.data());
  } else if (recipe.topology == MPI_GRAPH) {
    int nodes = 0;
    int edges = 0;
    real.Graphdims_get(comm, &nodes, &edges);
    recipe.index.resize(size_of(nodes));
    recipe.edges.resize(size_of(edges));
    real.Graph_get(comm, nodes, edges, recipe.index.data(), recipe.edges.data());
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
    real.Dist_graph_neighbors(comm, in, recipe.sources.data(), recipe.source_weights.data(), out,
                              recipe.destinations.data(), recipe.destination_weights.data());
  }
}

void read_comm(const Comm& comm, CommRecipe& recipe) {
  read_topology(comm.real, recipe);
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  real.Comm_get_name(comm.real, name, &length);
  recipe.name.assign(name, size_of(length));
  MPI_Errhandler handler = nullptr;
  real.Comm_get_errhandler(comm.real, &handler);
  Errhandler* known = errhandlers.find(handler);
  recipe.errhandler = known != nullptr ? reinterpret_cast<MPI_Errhandler>(known) : handler;
  if (known != nullptr) {
    known->used = true;
    real.Errhandler_free(&handler);
  }
}

void dress_comm(Comm& comm) {
  const CommRecipe& recipe = *comm.recipe;
  if (!recipe.name.empty()) real.Comm_set_name(comm.real, recipe.name.c_str());
  if (recipe.errhandler != nullptr)
    real.Comm_set_errhandler(comm.real, to_real(recipe.errhandler));
  comm.recipe.reset();
}

MPI_Comm with_topology(MPI_Comm plain, const CommRecipe& recipe) {
  MPI_Comm made = plain;
  if (recipe.topology == MPI_CART) {
    must(real.Cart_create(plain, static_cast<int>(recipe.dims.size()), recipe.dims.data(),
                          recipe.periods.data(), 0, &made),
         "making a Cartesian communicator again");
  } else if (recipe.topology == MPI_GRAPH) {
    must(real.Graph_create(plain, static_cast<int>(recipe.index.size()), recipe.index.data(),
                           recipe.edges.data(), 0, &made),
         "making a graph communicator again");
  } else if (recipe.topology == MPI_DIST_GRAPH) {
    must(real.Dist_graph_create_adjacent(
             plain, static_cast<int>(recipe.sources.size()), recipe.sources.data(),
             recipe.weighted ? recipe.source_weights.data() : MPI_UNWEIGHTED,
             static_cast<int>(recipe.destinations.size()), recipe.destinations.data(),
             recipe.weighted ? recipe.destination_weights.data() : MPI_UNWEIGHTED, pre.info_null, 0,
             &made),
         "making a distributed graph communicator again");
  }
  if (made != plain) real.Comm_free(&plain);
  return made;
}

void make_comm(Comm& comm) {
  MPI_Group world_group = nullptr;
  MPI_Group group = nullptr;
  real.Comm_group(world.real, &world_group);
  real.Group_incl(world_group, static_cast<int>(comm.peers->world.size()),
                  comm.peers->world.data(), &group);
  MPI_Comm plain = nullptr;
  must(real.Comm_create_group(world.real, group, 0, &plain), "making a communicator again");
  real.Group_free(&group);
  real.Group_free(&world_group);
  comm.real = with_topology(plain, *comm.recipe);
  dress_comm(comm);
}

// --- Infos -----------------------------------------------------------------------------------------

void read_info(Info& info) {
  info.recipe.clear();
  int keys = 0;
  real.Info_get_nkeys(info.real, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    real.Info_get_nthkey(info.real, i, key);
    int length = 0;
    int flag = 0;
    real.Info_get_valuelen(info.real, key, &length, &flag);
    std::string value(size_of(length) + 1, '\0');
    real.Info_get(info.real, key, length, value.data(), &flag);
    value.resize(size_of(length));
    info.recipe.emplace_back(key, std::move(value));
  }
}

void make_info(Info& info) {
  must(real.Info_create(&info.real), "making an info again");
  for (const auto& [key, value] : info.recipe)
    real.Info_set(info.real, key.c_str(), value.c_str());
  info.recipe.clear();
}

void make_group(Group& group) {
  MPI_Group world_group = nullptr;
  real.Comm_group(world.real, &world_group);
  must(real.Group_incl(world_group, static_cast<int>(group.world.size()), group.world.data(),
                       &group.real),
       "making a group again");
  real.Group_free(&world_group);
  group.world.clear();
}

}  // namespace

void take_objects_down() {
  for (Errhandler* handler : errhandlers.live()) handler->used = false;
  for (Comm* comm : {&world, &self}) {
    comm->recipe = std::make_unique<CommRecipe>();
    read_comm(*comm, *comm->recipe);
  }
  auto all_comms = comms.live();
  for (Comm* comm : all_comms) {
    comm->recipe = std::make_unique<CommRecipe>();
    read_comm(*comm, *comm->recipe);
  }
  for (Group* group : groups.live()) group->world = world_ranks_of(group->real, group->foreign);
  for (Datatype* type : datatypes.live()) type->recipe = read_type(type->real);
  for (Info* info : infos.live()) read_info(*info);

  if (bsend_buffer.address != nullptr) {
    void* address = nullptr;
    int size = 0;
    real.Buffer_detach(&address, &size);
  }
  std::reverse(all_comms.begin(), all_comms.end());
  for (Comm* comm : all_comms) real.Comm_free(&comm->real);
  for (Group* group : groups.live()) real.Group_free(&group->real);
  for (Datatype* type : datatypes.live()) real.Type_free(&type->real);
  for (Op* op : ops.live()) real.Op_free(&op->real);
  for (Info* info : infos.live()) real.Info_free(&info->real);
  for (Comm* comm : {&world, &self})  // lets go of the handlers before these are freed
    real.Comm_set_errhandler(comm->real, pre.errors_are_fatal);
  for (Errhandler* handler : errhandlers.live()) {
    real.Errhandler_free(&handler->real);
    if (handler->references <= 0 && !handler->used) forget(handler);
  }
}

void bring_objects_up() {
  for (Errhandler* handler : errhandlers.live())
    must(make_real(*handler), "making an error handler again");
  for (Info* info : infos.live()) make_info(*info);
  for (Op* op : ops.live()) must(make_real(*op), "making an operation again");
  for (Datatype* type : datatypes.live()) {
    type->real = make_type(*type->recipe);
    if (type->committed) real.Type_commit(&type->real);
    if (!type->recipe->name.empty()) real.Type_set_name(type->real, type->recipe->name.c_str());
    type->recipe.reset();
  }
  for (Group* group : groups.live()) make_group(*group);
  for (Comm* comm : {&world, &self}) dress_comm(*comm);
  for (Comm* comm : comms.live()) make_comm(*comm);
  if (bsend_buffer.address != nullptr)
    real.Buffer_attach(bsend_buffer.address, bsend_buffer.size);
}

}  // namespace bsp::shim
