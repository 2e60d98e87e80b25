// The virtual handles that the program holds instead of MPI's.
//
// Every object that the program creates is a shim object in a single reserved address range, so the check for one is
// a single subtraction. It holds the current epoch's real handle. When an epoch closes, the real object is freed
// after a recipe for recreating it has been saved (recipes.h); the next epoch fills in the new handle. MPI_COMM_WORLD
// and MPI_COMM_SELF map to the epoch's communicators. Other predefined objects survive an epoch change in place and
// pass through unchanged.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sidecar/shim/handles/fortran.h"
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/measure/peers.h"
#include "sidecar/shim/process/file_identity.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

// --- The address range ----------------------------------------------------------------------------
inline constexpr std::size_t kArenaBytes = std::size_t{256} << 20;  // only the used part becomes resident
extern char arena[kArenaBytes];

inline bool is_ours(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle) - reinterpret_cast<std::uintptr_t>(arena) < kArenaBytes;
}

// An object's Fortran number is its index in the arena, so it stays valid across epochs and needs no table. The
// numbers lie above MPI's own, which predefined objects keep.
inline constexpr MPI_Fint kFirstNumber = 1 << 24;
inline constexpr int kAlignment = 16;
static_assert(kArenaBytes / kAlignment < (std::size_t{1} << 30));

inline MPI_Fint fortran_number(const void* object) {
  return kFirstNumber + static_cast<MPI_Fint>((static_cast<const char*>(object) - arena) / kAlignment);
}

// --- Objects -------------------------------------------------------------------------------------

struct Object {
  std::uint64_t seq = 0;  // order of creation
};

struct CommRecipe;

struct Comm : Object {
  using Handle = MPI_Comm;
  MPI_Comm real = nullptr;
  std::atomic<std::uint64_t> collectives{0};  // that this rank has begun on it
  const Peers* peers = nullptr;
  bool inter = false;
  bool whole = false;  // includes all ranks: its collectives may be superstep edges
  // MPI_Comm_split_type has said so of its ranks, or a window on it, or it was made from such a one (objects/windows.h).
  bool shares_memory = false;
  std::int64_t id = 0;       // the same on all its ranks and unique to it; 0: not agreed yet (recipes.h)
  std::uint64_t origin = 0;  // which call made it: a hash, the same on all its ranks without asking them
  std::map<std::pair<const Peers*, int>, std::uint64_t> made;  // from it by wrap_tagged(), by ranks and tag
  std::map<std::array<int, 3>, std::uint32_t>
      partitioned;                     // requests made so far, by direction, peer and tag (partitioned.cc)
  std::unique_ptr<CommRecipe> recipe;  // while no epoch is open
};

inline constexpr int kLargestTag = (1 << 29) - 1;  // of the program (MPI_TAG_UB); the shim's own lie above

// What the Fortran bindings read directly.
struct SeenByFortran {
  FortranView view;
};

struct Group : SeenByFortran, Object {
  using Handle = MPI_Group;
  MPI_Group real = nullptr;
  int references = 1;      // held by the program: MPI_Comm_group returns the same group each time
  std::vector<int> world;  // while no epoch is open
};

inline bool is_f90(int combiner) {
  return combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

struct TypeRecipe;

struct Datatype : Object {
  using Handle = MPI_Datatype;
  MPI_Datatype real = nullptr;
  std::atomic<int> references{1};  // held by the program and by persistent requests
  bool committed = false;
  // From MPI_Type_create_f90_*, which returns the same type for the same arguments until the session ends.
  bool never_freed = false;
  std::unique_ptr<TypeRecipe> recipe;
};

struct Op : SeenByFortran, Object {
  using Handle = MPI_Op;
  MPI_Op real = nullptr;
  MPI_User_function* function = nullptr;
  int slot = -1;  // of the trampoline; -1: MPI calls the user's function directly
  int commute = 0;
  std::atomic<int> references{1};
};

struct Errhandler : Object {
  using Handle = MPI_Errhandler;
  MPI_Errhandler real = nullptr;
  enum class Of { kComm, kWin, kFile, kSession } of = Of::kComm;
  MPI_Comm_errhandler_function* function = nullptr;
  int slot = -1;
  std::atomic<int> references{1};  // held by the program: MPI_Comm_get_errhandler adds one
  bool used = false;               // by a communicator; set at the gate
  bool fortran = false;            // the function takes Fortran arguments
};

struct Info : Object {
  using Handle = MPI_Info;
  MPI_Info real = nullptr;
  std::vector<std::pair<std::string, std::string>> recipe;
};

struct WinRecipe;

// A lock that this rank holds; target kEveryRank: from MPI_Win_lock_all.
struct WindowLock {
  static constexpr int kEveryRank = -1;
  int target;
  int type;
  int assertion;
};

struct Win : Object {
  using Handle = MPI_Win;
  MPI_Win real = nullptr;
  const Peers* peers = nullptr;
  std::int64_t id = 0;  // the same on all its ranks and unique to it; 0: no epochs
  // The predefined attributes, to which the program may keep pointers.
  void* base = nullptr;
  MPI_Aint bytes = 0;
  int displacement_unit = 1;
  int flavor = MPI_WIN_FLAVOR_CREATE;
  int model = MPI_WIN_UNIFIED;
  void* allocated = nullptr;                               // by the shim, so that it outlives the epoch
  std::vector<std::pair<std::string, std::string>> hints;  // at creation
  std::vector<std::pair<void*, MPI_Aint>> attached;
  // What is open, for the gate.
  bool fenced = false;      // the last fence may have opened an epoch
  std::int64_t fences = 0;  // number of MPI_Win_fence calls
  bool accessing = false;   // from MPI_Win_start to _complete
  bool exposed = false;     // from MPI_Win_post to _wait
  std::vector<WindowLock> locks;
  std::unique_ptr<WinRecipe> recipe;  // while no epoch is open
};

struct FileRecipe;

struct File : Object {
  using Handle = MPI_File;
  MPI_File real = nullptr;
  const Peers* peers = nullptr;
  std::int64_t id = 0;  // as of a window
  // What the program opened.
  std::string name;
  std::string path;  // the same, absolute; "" if it leads to no file
  FileIdentity identity;
  int amode = 0;
  std::vector<std::pair<std::string, std::string>> hints;
  // The program's handles; a virtual one holds a reference. nullptr: no view set.
  MPI_Datatype etype = nullptr;
  MPI_Datatype filetype = nullptr;
  MPI_Offset appended_at = -1;  // MPI_MODE_APPEND, on the first rank: where the shared pointer began
  // For the gate. Threads may use a file concurrently.
  std::atomic<bool> shared_pointer{false};  // used by this rank
  bool untold = false;                      // MPI can't tell the shared pointer
  std::atomic<bool> pointer_lost{false};    // it isn't where it was in the last epoch
  std::atomic<int> unsaved{MPI_SUCCESS};    // the error of a gate's MPI_File_sync, until the program's returns it
  std::atomic<const char*> split{nullptr};  // the call that began a split collective
  std::atomic<std::int64_t> started{0};     // number of nonblocking collectives
  MPI_Comm comm = nullptr;                  // the communicator on which it was reopened, if it was
  int held = -1;                            // descriptor, while no epoch is open
  std::unique_ptr<FileRecipe> recipe;       // while no epoch is open
};

// Matched by a probe, not received.
struct Message : Object {
  using Handle = MPI_Message;
  MPI_Message real = nullptr;
  const Comm* comm = nullptr;  // may have been freed, and another be in its place
  std::uint64_t comm_seq = 0;
  const Peers* peers = nullptr;
  int source = -1;
  int tag = 0;
  std::size_t bytes = 0;
};

// --- Pools ---------------------------------------------------------------------------------------

// Allocates one object in the arena, aligned to 16 bytes; exits with a message when the arena is full.
void* arena_allocate(std::size_t bytes);

// The live objects of one kind. Thread-safe. For find() to be thread-safe too, the `real` handle of an object in the
// pool changes only through the pool (or while no other thread is inside MPI).
template <class T>
class Pool {
 public:
  using Handle = typename T::Handle;

  T* create(Handle real_handle = nullptr);
  void set_real(T* object, Handle real_handle);
  // Frees the real object, then the shim's; keeps the latter if MPI refuses.
  int free(T* object, int (*free_real)(Handle*));
  void destroy(T* object);
  // When an epoch closes: frees all real objects and keeps the shim's.
  void free_all_real(int (*free_real)(Handle*));
  // In order of creation. Only while no other thread is inside MPI, or under `lock`.
  [[nodiscard]] std::vector<T*> live() const;
  T* find(Handle real_handle) const;
  [[nodiscard]] std::size_t size() const { return objects_.size(); }

 private:
  // Kinds that a program makes and looks up in a loop, and of which no two objects have the same real handle. MPI itself
  // fills in that of a communicator (MPI_Comm_idup).
  static constexpr bool kIndexed = std::is_same_v<T, Group> || std::is_same_v<T, Op> || std::is_same_v<T, Errhandler>;
  void set_real_locked(T* object, Handle real_handle);

  std::vector<T*> objects_;
  std::vector<void*> free_;
  std::unordered_map<Handle, T*> by_real_;  // if kIndexed
};

extern Pool<Comm> comms;
extern Pool<Group> groups;
extern Pool<Datatype> datatypes;
extern Pool<Op> ops;
extern Pool<Errhandler> errhandlers;
extern Pool<Info> infos;
extern Pool<Win> windows;
extern Pool<File> files;
extern Pool<Message> matched_messages;

// MPI_COMM_WORLD and MPI_COMM_SELF. In no pool: they are opened and closed with the epoch.
extern Comm world;
extern Comm self;

// All ranks, numbered as in MPI_COMM_WORLD, while an epoch is open. The program has no handle of it: whatever the ranks' shims say
// to each other they say here, or on what is made from it. On a communicator of the program's, a pending receive might match
// it: Open MPI makes a communicator of a group, and an intercommunicator, by messages with ordinary tags.
extern MPI_Comm private_world;

// Drops one reference; the last one frees the object.
int release(Group* group);
int release(Datatype* type);
int release(Op* op);

// One object for each list, which lives as long as anything of the program's has it, and to the end of the epoch.
const Peers* intern_peers(std::vector<int> world_ranks);
// At a gate: those that are neither among `used` nor have brought what isn't counted yet.
void forget_peers_but(const std::unordered_set<const Peers*>& used);

// --- Program's handle -> real handle ---------------------------------------------------------------

template <class T>
inline T* object_of(typename T::Handle handle) {
  return is_ours(handle) ? reinterpret_cast<T*>(handle) : nullptr;
}

// The communicator behind a handle; nullptr for null handles and those that aren't virtual.
inline Comm* comm_of(MPI_Comm handle) {
  if (is_ours(handle)) return reinterpret_cast<Comm*>(handle);
  if (handle == pre.comm_world) return &world;
  if (handle == pre.comm_self) return &self;
  return nullptr;
}

inline MPI_Comm to_real(MPI_Comm handle) {
  Comm* comm = comm_of(handle);
  return comm != nullptr ? comm->real : handle;
}
inline MPI_Group to_real(MPI_Group h) { return is_ours(h) ? reinterpret_cast<Group*>(h)->real : h; }
inline MPI_Datatype to_real(MPI_Datatype h) { return is_ours(h) ? reinterpret_cast<Datatype*>(h)->real : h; }
inline MPI_Op to_real(MPI_Op h) { return is_ours(h) ? reinterpret_cast<Op*>(h)->real : h; }
inline MPI_Errhandler to_real(MPI_Errhandler h) { return is_ours(h) ? reinterpret_cast<Errhandler*>(h)->real : h; }
inline MPI_Info to_real(MPI_Info h) { return is_ours(h) ? reinterpret_cast<Info*>(h)->real : h; }
inline MPI_Win to_real(MPI_Win h) { return is_ours(h) ? reinterpret_cast<Win*>(h)->real : h; }
inline MPI_File to_real(MPI_File h) { return is_ours(h) ? reinterpret_cast<File*>(h)->real : h; }

// An array of handles, translated for one call.
template <class Handle>
class RealArray {
 public:
  RealArray(const Handle* handles, int count) {
    if (handles == nullptr || count <= 0) return;
    real_.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) real_.push_back(to_real(handles[i]));
  }
  [[nodiscard]] Handle* data() { return real_.empty() ? nullptr : real_.data(); }
  std::vector<Handle> take() { return std::move(real_); }

 private:
  std::vector<Handle> real_;
};

// --- Real handle -> program's handle: replaces *handle in place; null and predefined handles stay ------
void wrap(MPI_Comm* handle);
// This rank's latest collective on `parent` made it.
void wrap(MPI_Comm* handle, MPI_Comm parent);
// A call made it that isn't collective over `parent`, which may be null, but has a tag.
void wrap_tagged(MPI_Comm* handle, MPI_Comm parent, int tag);
void wrap(MPI_Group* handle);
void wrap(MPI_Datatype* handle);
void wrap(MPI_Op* handle);
void wrap(MPI_Errhandler* handle);
void wrap(MPI_Info* handle);

// Whether MPI may reorder the ranks of a new communicator. Not in an epoch: treematch (Open MPI 5.0) yields wrong
// edges in a session, and the operator decides which rank computes where.
inline int reordering(int asked) { return state.epochs ? 0 : asked; }

// The program has named a type. MPI forgets those of predefined types when its session ends.
void note_name(MPI_Datatype type, const char* name);

// Each MPI_GROUP_EMPTY that a call returns is a reference that the program frees; MPI forgets it when its session ends.
int free_predefined(MPI_Group* handle);
void forget_empty_groups();  // the session ends

// The program's handle of an existing real object, for arguments of user callbacks.
MPI_Datatype virtual_of(MPI_Datatype real_handle);
MPI_Comm virtual_of(MPI_Comm real_handle);
MPI_Win virtual_of(MPI_Win real_handle);
MPI_File virtual_of(MPI_File real_handle);

// World ranks, in the same order on all of them; those of both sides of an intercommunicator.
std::vector<int> all_ranks(const Comm& comm);

// A hash of both.
inline std::uint64_t combined(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ (value + 0x9e3779b97f4a7c15U)) * 0xff51afd7ed558ccdU;
  return hash ^ hash >> 32;
}

// The origin of what this rank's latest collective on a communicator makes.
inline std::uint64_t origin_on(const Comm& comm) {
  return combined(comm.origin, comm.collectives.load(std::memory_order_relaxed));
}

// World rank of each rank of a real group; < 0: not a process of this job.
std::vector<int> world_ranks(MPI_Group real_group);

// Fills in everything in a new communicator except its real handle.
void describe(Comm& comm);

}  // namespace bsp::shim
