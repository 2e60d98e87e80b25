// Calls that free, copy or mark an object, where a generated wrapper isn't enough.
#include "sidecar/shim/handles/attributes.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/objects/recipes.h"

namespace bsp::shim {

int release(Datatype* type) { return --type->references > 0 ? MPI_SUCCESS : datatypes.free(type, real.Type_free); }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

template <class T>
int free_object(typename T::Handle* handle, Pool<T>& pool, int (*free_real)(typename T::Handle*),
                typename T::Handle null) {
  T* object = handle != nullptr ? object_of<T>(*handle) : nullptr;
  if (object == nullptr) return free_real(handle);
  if (const int rc = pool.free(object, free_real); rc != MPI_SUCCESS) return rc;
  *handle = null;
  return MPI_SUCCESS;
}

int free_comm(MPI_Comm* comm, int (*free_real)(MPI_Comm*)) {
  Comm* object = comm != nullptr ? object_of<Comm>(*comm) : nullptr;
  if (object == nullptr && comm != nullptr &&
      comm_of(*comm) != nullptr) {  // MPI's own would ask the wrong error handler
    real.Comm_call_errhandler(to_real(*comm), MPI_ERR_COMM);
    return MPI_ERR_COMM;
  }
  if (object == nullptr) return free_real(comm);
  if (const int rc = delete_attributes(*comm); rc != MPI_SUCCESS) return rc;
  forget_requests_on(object);
  if (const int rc = comms.free(object, free_real); rc != MPI_SUCCESS) return rc;
  *comm = pre.comm_null;
  return MPI_SUCCESS;
}

int finish_dup(MPI_Comm from, MPI_Comm* made) {
  wrap(made, from);
  const int rc = copy_attributes(from, *made);
  if (rc != MPI_SUCCESS) free_comm(made, real.Comm_free);
  return rc;
}

// MPI fills in the real handle when the request completes; requests.cc then fills in the rest.
template <class Start>
int idup(MPI_Comm from, MPI_Comm* made, MPI_Request* request, const char* what, Start start) {
  Comm* object = comms.create(pre.comm_null);
  begin_collective(from);
  if (const Comm* of = comm_of(from)) {
    object->origin = origin_on(*of);
    object->shares_memory = of->shares_memory;
  }
  const int rc = start(&object->real);
  if (rc != MPI_SUCCESS) {
    comms.destroy(object);
    return rc;
  }
  object->peers = comm_of(from) != nullptr ? comm_of(from)->peers : nullptr;
  *made = reinterpret_cast<MPI_Comm>(object);
  Request* r = make_request(request, RequestKind::kCollective, what, from);
  if (r != nullptr)
    r->makes_comm = object;
  else
    describe(*object);
  return copy_attributes(from, *made);
}

bool has_topology(MPI_Comm comm) {
  int topology = MPI_UNDEFINED;
  return real.Topo_test(comm, &topology) == MPI_SUCCESS && topology != MPI_UNDEFINED;
}

// A communicator of the same ranks without a topology, which MPI_Comm_create doesn't copy.
int make_plain(MPI_Comm of, MPI_Comm* plain) {
  MPI_Group all = nullptr;
  real.Comm_group(of, &all);
  const int rc = real.Comm_create(of, all, plain);
  real.Group_free(&all);
  return rc;
}

// Open MPI 5.0 gives a communicator that MPI_Comm_create_group makes the topology of the old one. Of fewer or other ranks it isn't one, and
// can't be made again in the next epoch.
bool has_misfit_topology(MPI_Comm made, MPI_Comm from) {
  int result = MPI_UNEQUAL;
  if (made == pre.comm_null || !has_topology(made)) return false;
  return real.Comm_compare(made, to_real(from), &result) == MPI_SUCCESS && result != MPI_CONGRUENT;
}

int drop_topology(MPI_Comm* made) {
  MPI_Comm plain = nullptr;
  if (const int rc = make_plain(*made, &plain); rc != MPI_SUCCESS) return rc;
  real.Comm_free(made);
  *made = plain;
  return MPI_SUCCESS;
}

// Calls create(plain): of the same ranks, without a topology, and nothing else uses it.
template <class Create>
int make_of_fresh(MPI_Comm comm_old, MPI_Comm* newcomm, Create create) {
  begin_collective(comm_old);
  const MPI_Comm of = to_real(comm_old);
  const Comm* known = comm_of(comm_old);
  if (known == nullptr || known->inter) return create(of);  // an error
  MPI_Comm fresh = nullptr;
  int rc = make_plain(of, &fresh);
  if (rc != MPI_SUCCESS) return rc;
  // The program's communicator reports errors, not this one.
  real.Comm_set_errhandler(fresh, pre.errors_return);
  rc = create(fresh);
  real.Comm_free(&fresh);
  if (rc != MPI_SUCCESS) {
    real.Comm_call_errhandler(of, rc);
    return rc;
  }
  MPI_Errhandler handler = nullptr;
  real.Comm_get_errhandler(of, &handler);
  real.Comm_set_errhandler(*newcomm, handler);
  real.Errhandler_free(&handler);
  wrap(newcomm, comm_old);
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {

// --- Communicators ---------------------------------------------------------------------------------

int MPI_Comm_free(MPI_Comm* comm) {
  Call call;
  return free_comm(comm, real.Comm_free);
}

int MPI_Comm_disconnect(MPI_Comm* comm) {
  Call call;
  return free_comm(comm, real.Comm_disconnect);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  Call call;
  begin_collective(comm);
  const int rc = real.Comm_dup(to_real(comm), newcomm);
  return rc == MPI_SUCCESS ? finish_dup(comm, newcomm) : rc;
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  Call call;
  begin_collective(comm);
  const int rc = real.Comm_dup_with_info(to_real(comm), to_real(info), newcomm);
  return rc == MPI_SUCCESS ? finish_dup(comm, newcomm) : rc;
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  Call call;
  return idup(comm, newcomm, request, "MPI_Comm_idup",
              [&](MPI_Comm* made) { return real.Comm_idup(to_real(comm), made, request); });
}

int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
  Call call;
  return idup(comm, newcomm, request, "MPI_Comm_idup_with_info",
              [&](MPI_Comm* made) { return real.Comm_idup_with_info(to_real(comm), to_real(info), made, request); });
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  Call call;
  int rc = real.Comm_create_group(to_real(comm), to_real(group), tag, newcomm);
  if (rc == MPI_SUCCESS && has_misfit_topology(*newcomm, comm)) rc = drop_topology(newcomm);
  if (rc == MPI_SUCCESS) wrap_tagged(newcomm, comm, tag);
  return rc;
}

// Open MPI 5.0 exchanges the edges on the communicator under the tags -50 and -51 and receives them from any source. Its
// own nonblocking collectives count down through these tags: once some six communicators have been made of a
// communicator, a rank may take another's reduction for an edge, and no rank returns (open-mpi/ompi#13918). So the
// edges are exchanged on a communicator that nothing else uses.
int MPI_Dist_graph_create(MPI_Comm comm_old, int n, const int nodes[], const int degrees[], const int targets[],
                          const int weights[], MPI_Info info, int reorder, MPI_Comm* newcomm) {
  Call call;
  return make_of_fresh(comm_old, newcomm, [&](MPI_Comm from) {
    return real.Dist_graph_create(from, n, nodes, degrees, targets, weights, to_real(info), reordering(reorder),
                                  newcomm);
  });
}

// Made of a communicator with a topology, Open MPI 5.0's graph has both: MPI_Topo_test names the other one, and
// MPI_Dist_graph_neighbors_count crashes.
int MPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[],
                                   int outdegree, const int destinations[], const int destweights[], MPI_Info info,
                                   int reorder, MPI_Comm* newcomm) {
  Call call;
  const auto create = [&](MPI_Comm from) {
    return real.Dist_graph_create_adjacent(from, indegree, sources, sourceweights, outdegree, destinations, destweights,
                                           to_real(info), reordering(reorder), newcomm);
  };
  if (comm_of(comm_old) != nullptr && has_topology(to_real(comm_old))) return make_of_fresh(comm_old, newcomm, create);
  begin_collective(comm_old);
  const int rc = create(to_real(comm_old));
  if (rc == MPI_SUCCESS) wrap(newcomm, comm_old);
  return rc;
}

// In a session Open MPI doesn't set the parent; a program compares it with MPI_COMM_NULL.
int MPI_Comm_get_parent(MPI_Comm* parent) {
  Call call;
  *parent = pre.comm_null;
  if (state.epochs) return MPI_SUCCESS;
  const int rc = real.Comm_get_parent(parent);
  if (rc != MPI_SUCCESS || *parent == pre.comm_null) return rc;
  *parent = virtual_of(*parent);
  if (!is_ours(*parent)) wrap(parent);
  return rc;
}

// --- Groups, infos ---------------------------------------------------------------------------------

int MPI_Group_free(MPI_Group* group) {
  Call call;
  Group* object = group != nullptr ? object_of<Group>(*group) : nullptr;
  if (object == nullptr) return group != nullptr ? free_predefined(group) : real.Group_free(group);
  if (const int rc = release(object); rc != MPI_SUCCESS) return rc;
  *group = pre.group_null;
  return MPI_SUCCESS;
}

int MPI_Info_free(MPI_Info* info) {
  Call call;
  return free_object(info, infos, real.Info_free, pre.info_null);
}

// --- Datatypes -------------------------------------------------------------------------------------

int MPI_Type_commit(MPI_Datatype* type) {
  Call call;
  Datatype* object = type != nullptr ? object_of<Datatype>(*type) : nullptr;
  if (object == nullptr) return real.Type_commit(type);
  const int rc = real.Type_commit(&object->real);
  if (rc == MPI_SUCCESS) object->committed = true;
  return rc;
}

int MPI_Type_free(MPI_Datatype* type) {
  Call call;
  Datatype* object = type != nullptr ? object_of<Datatype>(*type) : nullptr;
  if (object == nullptr) return real.Type_free(type);
  if (const int rc = delete_attributes(*type); rc != MPI_SUCCESS) return rc;
  if (const int rc = release(object); rc != MPI_SUCCESS) return rc;
  *type = pre.datatype_null;
  return MPI_SUCCESS;
}

int MPI_Type_dup(MPI_Datatype type, MPI_Datatype* newtype) {
  Call call;
  const int rc = real.Type_dup(to_real(type), newtype);
  if (rc != MPI_SUCCESS) return rc;
  wrap(newtype);
  if (Datatype* made = object_of<Datatype>(*newtype))
    made->committed = object_of<Datatype>(type) == nullptr || object_of<Datatype>(type)->committed;
  return copy_attributes(type, *newtype);
}

int MPI_Type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_datatypes, int integers[],
                          MPI_Aint addresses[], MPI_Datatype types[]) {
  Call call;
  const int rc =
      real.Type_get_contents(to_real(type), max_integers, max_addresses, max_datatypes, integers, addresses, types);
  if (rc != MPI_SUCCESS) return rc;
  int integer_count = 0;
  int address_count = 0;
  int type_count = 0;
  int combiner = 0;
  real.Type_get_envelope(to_real(type), &integer_count, &address_count, &type_count, &combiner);
  for (int i = 0; i < type_count && i < max_datatypes; ++i) wrap(&types[i]);
  return rc;
}

// --- Profiling -----------------------------------------------------------------------------------------

int MPI_Pcontrol(const int level, ...) {
  const BriefCall call;
  return real.Pcontrol(level);
}

// --- The Bsend buffer --------------------------------------------------------------------------------

int MPI_Buffer_attach(void* buffer, int size) {
  Call call;
  const int rc = real.Buffer_attach(buffer, size);
  if (rc == MPI_SUCCESS) bsend_buffer = {buffer, size};
  return rc;
}

int MPI_Buffer_detach(void* buffer, int* size) {
  Call call;
  const int rc = real.Buffer_detach(buffer, size);
  if (rc == MPI_SUCCESS) bsend_buffer = {};
  return rc;
}

}  // extern "C"
