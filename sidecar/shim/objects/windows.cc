// The calls that create, free and synchronise windows; those that access them are generated.
#include "sidecar/shim/objects/windows.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "sidecar/shim/handles/attributes.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/objects/memory.h"
#include "sidecar/shim/objects/recipes.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

// What may change while several threads use one window. Taken only with MPI_THREAD_MULTIPLE.
class WindowLists {
 public:
  WindowLists() {
    if (state.multiple) lock_.lock();
  }
  ~WindowLists() {
    if (state.multiple) lock_.unlock();
  }
  WindowLists(const WindowLists&) = delete;
  WindowLists& operator=(const WindowLists&) = delete;

 private:
  static std::mutex lock_;
};
std::mutex WindowLists::lock_;

template <class T>
T attribute(MPI_Win window, int keyval) {
  T* value = nullptr;
  int found = 0;
  real.Win_get_attr(window, keyval, &value, &found);
  return found != 0 && value != nullptr ? *value : T{};
}

// Replaces MPI's new window by a virtual one, which is like `made`.
void adopt(MPI_Win* handle, Win made, MPI_Comm comm, MPI_Info info) {
  Win* window = windows.create(*handle);
  made.real = *handle;
  made.seq = window->seq;
  made.bytes = attribute<MPI_Aint>(*handle, MPI_WIN_SIZE);
  made.displacement_unit = attribute<int>(*handle, MPI_WIN_DISP_UNIT);
  made.model = attribute<int>(*handle, MPI_WIN_MODEL);
  int found = 0;
  real.Win_get_attr(*handle, MPI_WIN_BASE, &made.base, &found);
  *window = std::move(made);
  if (info != pre.info_null) window->hints = read_info(to_real(info));
  if (const Comm* members = comm_of(comm); members != nullptr && state.epochs) {
    window->peers = members->peers;
    window->id = agree_on_id(*members, window->seq);
  }
  *handle = reinterpret_cast<MPI_Win>(window);
}

int adopted(int rc, MPI_Win* handle, Win made, MPI_Comm comm, MPI_Info info) {
  if (rc == MPI_SUCCESS) adopt(handle, std::move(made), comm, info);
  return rc;
}

// A window on memory of the shim's own, zeroed: between several ranks Open MPI's is, and programs rely on it.
int allocate(Win window, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* handle) {
  if (window.bytes >= 0 && allocate_memory(window.bytes, info, &window.allocated) != MPI_SUCCESS) {
    real.Comm_call_errhandler(to_real(comm), MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
  if (window.allocated != nullptr) std::memset(window.allocated, 0, static_cast<std::size_t>(window.bytes));
  window.base = window.allocated;
  void* const memory = window.allocated;
  const int rc = make_real(window, to_real(info), to_real(comm), handle);
  if (rc == MPI_SUCCESS)
    *static_cast<void**>(baseptr) = memory;
  else
    std::free(memory);
  return adopted(rc, handle, std::move(window), comm, info);
}

bool is_of_one_rank(MPI_Comm comm) {
  const Comm* members = comm_of(comm);
  return members != nullptr && !members->inter && members->peers->world.size() == 1;
}

// Takes note of a call that has succeeded.
template <class Note>
int with_note(int rc, MPI_Win handle, Note note) {
  Win* window = object_of<Win>(handle);
  if (rc != MPI_SUCCESS || window == nullptr) return rc;
  const WindowLists guard;
  note(*window);
  return rc;
}

void forget_lock(Win& window, int target) {
  const auto held = std::ranges::find(window.locks, target, &WindowLock::target);
  if (held != window.locks.end()) window.locks.erase(held);
}

// MPI 4.1's other way to ask for it.
bool names_shared_memory(MPI_Info info) {
  char value[sizeof "mpi_shared_memory" + 1] = "";
  int bytes = sizeof value, found = 0;
  return info != pre.info_null &&
         real.Info_get_string(to_real(info), "mpi_hw_resource_type", &bytes, value, &found) == MPI_SUCCESS &&
         found != 0 && std::strcmp(value, "mpi_shared_memory") == 0;
}

}  // namespace

namespace bsp::shim {

void note_split_type(MPI_Comm made, int split_type, MPI_Info info) {
  Comm* comm = object_of<Comm>(made);
  if (comm != nullptr &&
      (split_type == MPI_COMM_TYPE_SHARED || (split_type == MPI_COMM_TYPE_HW_GUIDED && names_shared_memory(info))))
    comm->shares_memory = true;
}

std::string parting_blocker(bool (*parts_from)(int rank)) {
  const auto parts = [&](const Comm* comm) {
    return comm->shares_memory && !comm->inter && std::ranges::any_of(comm->peers->world, parts_from);
  };
  if (!parts(&world) && std::ranges::none_of(comms.live(), parts)) return "";
  return "a communicator whose ranks share memory (MPI_COMM_TYPE_SHARED) and would part: move all of its pod's ranks "
         "together, or let the program free it";
}

}  // namespace bsp::shim

extern "C" {

// --- Creation ----------------------------------------------------------------------------------------

int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  Call call;
  return adopted(real.Win_create(base, size, disp_unit, to_real(info), to_real(comm), win), win, {}, comm, info);
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  Call call;
  Win made;
  made.flavor = MPI_WIN_FLAVOR_DYNAMIC;
  return adopted(real.Win_create_dynamic(to_real(info), to_real(comm), win), win, std::move(made), comm, info);
}

int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  Call call;
  Win made;
  made.flavor = MPI_WIN_FLAVOR_ALLOCATE;
  made.bytes = size;
  made.displacement_unit = disp_unit;
  if (state.epochs) return allocate(std::move(made), info, comm, baseptr, win);
  return adopted(real.Win_allocate(size, disp_unit, to_real(info), to_real(comm), baseptr, win), win, std::move(made),
                 comm, info);
}

int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  Call call;
  Win made;
  made.flavor = MPI_WIN_FLAVOR_SHARED;
  made.bytes = size;
  made.displacement_unit = disp_unit;
  if (state.epochs && is_of_one_rank(comm)) return allocate(std::move(made), info, comm, baseptr, win);
  const int rc = real.Win_allocate_shared(size, disp_unit, to_real(info), to_real(comm), baseptr, win);
  // The program relies on it, whoever has told it so.
  if (Comm* of = comm_of(comm); rc == MPI_SUCCESS && of != nullptr) of->shares_memory = true;
  return adopted(rc, win, std::move(made), comm, info);
}

int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr) {
  Call call;
  const Win* window = object_of<Win>(win);
  const bool own = window != nullptr && window->flavor == MPI_WIN_FLAVOR_SHARED && window->allocated != nullptr;
  if (!own || (rank != 0 && rank != MPI_PROC_NULL))
    return real.Win_shared_query(to_real(win), rank, size, disp_unit, baseptr);
  *size = window->bytes;
  *disp_unit = window->displacement_unit;
  *static_cast<void**>(baseptr) = window->base;
  return MPI_SUCCESS;
}

int MPI_Win_free(MPI_Win* win) {
  Call call;
  Win* window = win != nullptr ? object_of<Win>(*win) : nullptr;
  if (window == nullptr) return real.Win_free(win);
  if (const int rc = delete_attributes(*win); rc != MPI_SUCCESS) return rc;
  void* const memory = window->allocated;
  if (const int rc = windows.free(window, real.Win_free); rc != MPI_SUCCESS) return rc;
  std::free(memory);
  *win = pre.win_null;
  return MPI_SUCCESS;
}

int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  Call call;
  return with_note(real.Win_attach(to_real(win), base, size), win,
                   [&](Win& window) { window.attached.emplace_back(base, size); });
}

int MPI_Win_detach(MPI_Win win, const void* base) {
  Call call;
  return with_note(real.Win_detach(to_real(win), base), win, [&](Win& window) {
    const auto piece = std::ranges::find(window.attached, base, &std::pair<void*, MPI_Aint>::first);
    if (piece != window.attached.end()) window.attached.erase(piece);
  });
}

// --- Synchronisation -----------------------------------------------------------------------------------

int MPI_Win_fence(int assertion, MPI_Win win) {
  Call call;
  return with_note(real.Win_fence(assertion, to_real(win)), win, [&](Win& window) {
    window.fenced = (assertion & MPI_MODE_NOSUCCEED) == 0;
    ++window.fences;
  });
}

int MPI_Win_lock(int type, int rank, int assertion, MPI_Win win) {
  Call call;
  return with_note(real.Win_lock(type, rank, assertion, to_real(win)), win, [&](Win& window) {
    if (rank != MPI_PROC_NULL) window.locks.push_back({rank, type, assertion});
  });
}

int MPI_Win_unlock(int rank, MPI_Win win) {
  Call call;
  return with_note(real.Win_unlock(rank, to_real(win)), win, [&](Win& window) { forget_lock(window, rank); });
}

int MPI_Win_lock_all(int assertion, MPI_Win win) {
  Call call;
  return with_note(real.Win_lock_all(assertion, to_real(win)), win,
                   [&](Win& window) { window.locks.push_back({WindowLock::kEveryRank, MPI_LOCK_SHARED, assertion}); });
}

int MPI_Win_unlock_all(MPI_Win win) {
  Call call;
  return with_note(real.Win_unlock_all(to_real(win)), win,
                   [&](Win& window) { forget_lock(window, WindowLock::kEveryRank); });
}

int MPI_Win_start(MPI_Group group, int assertion, MPI_Win win) {
  Call call;
  return with_note(real.Win_start(to_real(group), assertion, to_real(win)), win, [](Win& w) { w.accessing = true; });
}

int MPI_Win_complete(MPI_Win win) {
  Call call;
  return with_note(real.Win_complete(to_real(win)), win, [](Win& window) { window.accessing = false; });
}

int MPI_Win_post(MPI_Group group, int assertion, MPI_Win win) {
  Call call;
  return with_note(real.Win_post(to_real(group), assertion, to_real(win)), win, [](Win& w) { w.exposed = true; });
}

int MPI_Win_wait(MPI_Win win) {
  Call call;
  return with_note(real.Win_wait(to_real(win)), win, [](Win& window) { window.exposed = false; });
}

int MPI_Win_test(MPI_Win win, int* flag) {
  Call call;
  return with_note(real.Win_test(to_real(win), flag), win, [&](Win& window) {
    if (*flag) window.exposed = false;
  });
}

}  // extern "C"
