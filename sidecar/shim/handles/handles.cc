#include "sidecar/shim/handles/handles.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "sidecar/shim/handles/saved.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

alignas(4096) char arena[kArenaBytes];

Pool<Comm> comms;
Pool<Group> groups;
Pool<Datatype> datatypes;
Pool<Op> ops;
Pool<Errhandler> errhandlers;
Pool<Info> infos;
Pool<Win> windows;
Pool<File> files;
Pool<Message> matched_messages;
Comm world;
Comm self;
MPI_Comm private_world = nullptr;

namespace {

std::mutex pools_lock;             // protects the pools and the interned peers; object creation is rare
std::mutex group_references_lock;  // so that no thread finds a group of which another drops the last reference
std::size_t arena_used = 64;
std::uint64_t seq = 0;

void* allocate_locked(std::size_t bytes) {
  bytes = (bytes + 15) & ~std::size_t{15};
  if (arena_used + bytes > kArenaBytes)
    die("the program holds more MPI objects than fit into the shim's %zu MiB", kArenaBytes >> 20);
  void* storage = arena + arena_used;
  arena_used += bytes;
  return storage;
}

}  // namespace

void* arena_allocate(std::size_t bytes) {
  std::lock_guard guard(pools_lock);
  return allocate_locked(bytes);
}

template <class T>
T* Pool<T>::create(Handle real_handle) {
  std::lock_guard guard(pools_lock);
  void* storage = nullptr;
  if (free_.empty()) {
    storage = allocate_locked(sizeof(T));
  } else {
    storage = free_.back();
    free_.pop_back();
  }
  T* object = new (storage) T();
  if constexpr (std::is_same_v<T, Op>)
    object->view.fill(0);  // nothing of an operation is read: only a flag is set
  else if constexpr (requires { object->view; })
    object->view.fill(fortran_number(object));
  object->seq = ++seq;
  set_real_locked(object, real_handle);
  objects_.push_back(object);
  return object;
}

template <class T>
void Pool<T>::set_real_locked(T* object, Handle real_handle) {
  if constexpr (kIndexed) {
    if (object->real != nullptr) by_real_.erase(object->real);
    if (real_handle != nullptr) by_real_[real_handle] = object;
  }
  object->real = real_handle;
}

template <class T>
void Pool<T>::set_real(T* object, Handle real_handle) {
  std::lock_guard guard(pools_lock);
  set_real_locked(object, real_handle);
}

template <class T>
int Pool<T>::free(T* object, int (*free_real)(Handle*)) {
  // Removed before MPI frees it, because MPI may reuse its address for an object that another thread creates.
  Handle real_handle = object->real;
  set_real(object, nullptr);
  if (const int rc = free_real(&real_handle); rc != MPI_SUCCESS) {
    set_real(object, real_handle);
    return rc;
  }
  destroy(object);
  return MPI_SUCCESS;
}

template <class T>
void Pool<T>::destroy(T* object) {
  std::lock_guard guard(pools_lock);
  set_real_locked(object, nullptr);
  // From the end: most objects that a program frees are young.
  objects_.erase(std::next(std::find(objects_.rbegin(), objects_.rend(), object)).base());
  object->~T();
  free_.push_back(object);
}

template <class T>
void Pool<T>::free_all_real(int (*free_real)(Handle*)) {
  std::lock_guard guard(pools_lock);
  for (T* object : objects_) {
    Handle real_handle = object->real;
    set_real_locked(object, nullptr);
    free_real(&real_handle);
  }
}

template <class T>
std::vector<T*> Pool<T>::live() const {
  return objects_;  // appended in order of creation, erased in place
}

template <class T>
T* Pool<T>::find(Handle real_handle) const {
  std::lock_guard guard(pools_lock);
  if constexpr (kIndexed) {
    const auto found = by_real_.find(real_handle);
    return found == by_real_.end() ? nullptr : found->second;
  } else {
    auto found = std::find_if(objects_.begin(), objects_.end(), [&](T* object) { return object->real == real_handle; });
    return found == objects_.end() ? nullptr : *found;
  }
}

template class Pool<Comm>;
template class Pool<Group>;
template class Pool<Datatype>;
template class Pool<Op>;
template class Pool<Errhandler>;
template class Pool<Info>;
template class Pool<Win>;
template class Pool<File>;
template class Pool<Message>;

namespace {
std::map<std::vector<int>, std::unique_ptr<Peers>> interned;
}  // namespace

void forget_peers_but(const std::unordered_set<const Peers*>& used) {
  std::lock_guard guard(pools_lock);
  // What collectives have brought from these isn't counted by rank yet.
  std::erase_if(interned, [&](const auto& entry) {
    return entry.second->from_all.bytes == 0 && !used.contains(entry.second.get());
  });
}

const Peers* intern_peers(std::vector<int> world_ranks) {
  std::lock_guard guard(pools_lock);
  auto& entry = interned[world_ranks];
  if (!entry) entry = std::make_unique<Peers>(std::move(world_ranks));
  return entry.get();
}

std::vector<int> world_ranks(MPI_Group group) {
  MPI_Group world_group = nullptr;
  int size = 0;
  real.Group_size(group, &size);
  std::vector<int> from(static_cast<std::size_t>(size));
  std::vector<int> to(static_cast<std::size_t>(size), -1);
  if (world.real == nullptr) return to;  // sessions without MPI_Init, under mpirun: there is no world
  real.Comm_group(world.real, &world_group);
  std::iota(from.begin(), from.end(), 0);
  real.Group_translate_ranks(group, size, from.data(), world_group, to.data());
  for (int& rank : to)
    if (rank < 0) rank = -1;  // MPI_UNDEFINED
  real.Group_free(&world_group);
  return to;
}

namespace {

std::vector<int> own_side(const Comm& comm) {
  if (!comm.inter) return comm.peers->world;
  MPI_Group local = nullptr;
  real.Comm_group(comm.real, &local);
  std::vector<int> ranks = world_ranks(local);
  real.Group_free(&local);
  return ranks;
}

}  // namespace

std::vector<int> all_ranks(const Comm& comm) {
  std::vector<int> ranks = own_side(comm);
  if (!comm.inter) return ranks;
  const std::vector<int>& others = comm.peers->world;
  ranks.insert(ranks < others ? ranks.end() : ranks.begin(), others.begin(), others.end());
  return ranks;
}

void describe(Comm& comm) {
  int inter = 0;
  real.Comm_test_inter(comm.real, &inter);
  comm.inter = inter != 0;
  MPI_Group group = nullptr;
  if (comm.inter)
    real.Comm_remote_group(comm.real, &group);
  else
    real.Comm_group(comm.real, &group);
  std::vector<int> ranks = world_ranks(group);
  real.Group_free(&group);
  comm.whole = !comm.inter && ranks.size() == static_cast<std::size_t>(state.size);
  comm.peers = intern_peers(std::move(ranks));
}

void wrap(MPI_Comm* handle) {
  if (*handle == pre.comm_null || *handle == pre.comm_world || *handle == pre.comm_self) return;
  Comm* comm = comms.create(*handle);
  describe(*comm);
  *handle = reinterpret_cast<MPI_Comm>(comm);
}

// All ranks call the collectives of one communicator in the same order, also with threads.
void wrap(MPI_Comm* handle, MPI_Comm parent) {
  wrap(handle);
  Comm* made = object_of<Comm>(*handle);
  const Comm* of = comm_of(parent);
  if (made == nullptr || of == nullptr) return;
  made->origin = origin_on(*of);
  made->shares_memory = of->shares_memory;
}

// Threads may make such communicators of the same ranks in any order only if their tags differ.
void wrap_tagged(MPI_Comm* handle, MPI_Comm parent, int tag) {
  wrap(handle);
  Comm* made = object_of<Comm>(*handle);
  if (made == nullptr) return;
  Comm* of = comm_of(parent);
  if (of == nullptr) {
    of = &world;
    tag = -1 - tag;  // none of the world's own
  }
  made->shares_memory = of->shares_memory;
  const Peers* members = intern_peers(all_ranks(*made));
  std::lock_guard guard(pools_lock);
  made->origin = combined(combined(of->origin, static_cast<std::uint64_t>(tag)), ++of->made[{members, tag}]);
}

namespace {

struct {
  int counted = 0;  // by MPI, in this session
  int forgotten = 0;
} empty_groups;

}  // namespace

void wrap(MPI_Group* handle) {
  if (*handle == pre.group_null) return;
  std::lock_guard guard(group_references_lock);
  if (*handle == pre.group_empty) {
    ++empty_groups.counted;
    return;
  }
  Group* group = groups.find(*handle);
  if (group == nullptr) {
    group = groups.create(*handle);
  } else {  // MPI has counted another reference; the shim counts its own
    MPI_Group reference = *handle;
    real.Group_free(&reference);
    ++group->references;
  }
  *handle = reinterpret_cast<MPI_Group>(group);
}

// What MPI has forgotten must not reach it: it would free the predefined group itself.
int free_predefined(MPI_Group* handle) {
  if (*handle == pre.group_empty) {
    std::lock_guard guard(group_references_lock);
    if (empty_groups.counted > 0) {
      --empty_groups.counted;
    } else if (empty_groups.forgotten > 0) {
      --empty_groups.forgotten;
      *handle = pre.group_null;
      return MPI_SUCCESS;
    }
  }
  return real.Group_free(handle);
}

void forget_empty_groups() { empty_groups.forgotten += std::exchange(empty_groups.counted, 0); }

int release(Group* group) {
  std::lock_guard guard(group_references_lock);
  if (group->references == 1) return groups.free(group, real.Group_free);
  --group->references;
  return MPI_SUCCESS;
}

void wrap(MPI_Datatype* handle) {
  if (*handle == pre.datatype_null) return;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  real.Type_get_envelope(*handle, &integers, &addresses, &types, &combiner);
  if (combiner == MPI_COMBINER_NAMED) return;
  Datatype* type = is_f90(combiner) ? datatypes.find(*handle) : nullptr;
  if (type == nullptr) type = datatypes.create(*handle);
  type->never_freed = is_f90(combiner);
  *handle = reinterpret_cast<MPI_Datatype>(type);
}

void wrap(MPI_Op* handle) {
  if (Op* op = ops.find(*handle)) *handle = reinterpret_cast<MPI_Op>(op);
}

void wrap(MPI_Errhandler* handle) {
  Errhandler* known = errhandlers.find(*handle);
  if (known == nullptr) return;        // predefined
  MPI_Errhandler reference = *handle;  // MPI has counted another reference for this handle; the shim counts its own
  real.Errhandler_free(&reference);
  ++known->references;
  *handle = reinterpret_cast<MPI_Errhandler>(known);
}

void wrap(MPI_Info* handle) {
  if (*handle == pre.info_null || *handle == pre.info_env) return;
  Info* info = infos.create(*handle);
  *handle = reinterpret_cast<MPI_Info>(info);
}

MPI_Datatype virtual_of(MPI_Datatype real_handle) {
  Datatype* type = datatypes.find(real_handle);
  return type != nullptr ? reinterpret_cast<MPI_Datatype>(type) : real_handle;
}

MPI_Comm virtual_of(MPI_Comm real_handle) {
  if (real_handle == world.real) return pre.comm_world;
  if (real_handle == self.real) return pre.comm_self;
  Comm* comm = comms.find(real_handle);
  return comm != nullptr ? reinterpret_cast<MPI_Comm>(comm) : real_handle;
}

MPI_Win virtual_of(MPI_Win real_handle) {
  Win* window = windows.find(real_handle);
  return window != nullptr ? reinterpret_cast<MPI_Win>(window) : real_handle;
}

MPI_File virtual_of(MPI_File real_handle) {
  File* file = files.find(real_handle);
  return file != nullptr ? reinterpret_cast<MPI_File>(file) : real_handle;
}

}  // namespace bsp::shim
