// Windows: how each is closed at a gate and recreated in the next epoch.
#include <algorithm>
#include <ranges>

#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/objects/windows.h"

namespace bsp::shim {
namespace {

void unlock(const Win& window) {
  for (const WindowLock& held : std::views::reverse(window.locks))
    must(held.target == WindowLock::kEveryRank ? real.Win_unlock_all(window.real)
                                               : real.Win_unlock(held.target, window.real),
         "unlocking a window");
}

void lock_again(const Win& window) {
  for (const WindowLock& held : window.locks)
    must(held.target == WindowLock::kEveryRank ? real.Win_lock_all(held.assertion, window.real)
                                               : real.Win_lock(held.type, held.target, held.assertion, window.real),
         "locking a window again");
}

std::unique_ptr<WinRecipe> read_window(const Win& window) {
  auto recipe = std::make_unique<WinRecipe>();
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  real.Win_get_name(window.real, name, &length);
  recipe->name.assign(name, static_cast<std::size_t>(length));
  recipe->hints = current_hints(window.hints, window.real, real.Win_get_info);
  MPI_Errhandler handler = nullptr;
  real.Win_get_errhandler(window.real, &handler);
  recipe->errhandler = keep_errhandler(handler);
  return recipe;
}

void recreate(Win& window) {
  const WinRecipe& recipe = *window.recipe;
  MPI_Comm comm = comm_of_ranks(window.peers->world);
  MPI_Info hints = make_info(recipe.hints);
  must(make_real(window, hints, comm, &window.real), "recreating a window");
  real.Info_free(&hints);
  real.Win_set_name(window.real, recipe.name.c_str());
  real.Win_set_errhandler(window.real, to_real(recipe.errhandler));
  for (const auto& [piece, bytes] : window.attached)
    must(real.Win_attach(window.real, piece, bytes), "attaching memory to a window again");
  // No rank is back in the program, where it may compute for long, while another needs it to get a lock.
  real.Barrier(comm);
  if (window.fenced) must(real.Win_fence(MPI_MODE_NOPRECEDE, window.real), "opening a fence epoch again");
  lock_again(window);
  real.Barrier(comm);
  real.Comm_free(&comm);
  window.recipe.reset();
}

}  // namespace

int make_real(const Win& window, MPI_Info info, MPI_Comm comm, MPI_Win* made) {
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return real.Win_create_dynamic(info, comm, made);
  return real.Win_create(window.base, window.bytes, window.displacement_unit, info, comm, made);
}

std::string window_blocker() {
  for (const Win* window : windows.live()) {
    if (window->flavor == MPI_WIN_FLAVOR_SHARED && window->allocated == nullptr)
      return "an RMA window whose ranks share memory (MPI_Win_allocate_shared)";
    if (window->accessing) return "an open RMA access epoch (MPI_Win_start without MPI_Win_complete)";
    if (window->exposed) return "an open RMA exposure epoch (MPI_Win_post without MPI_Win_wait)";
    if (!window->locks.empty()) real.Win_flush_all(window->real);
  }
  return "";
}

std::int64_t share_of_windows() {
  std::int64_t sum = 0;
  for (const Win* window : windows.live())
    sum += share_of_object(window->peers->world, window->id) + share_of_object(window->peers->world, -window->fences);
  return sum;
}

void close_windows() {
  const std::vector<Win*> all = in_order(windows);
  for (const Win* window : all) unlock(*window);
  for (Win* window : all) {
    if (window->fenced) must(real.Win_fence(MPI_MODE_NOSUCCEED, window->real), "ending a fence epoch");
    window->recipe = read_window(*window);
    must(real.Win_free(&window->real), "closing a window");
  }
}

void reopen_windows() {
  for (Win* window : in_order(windows)) recreate(*window);
}

}  // namespace bsp::shim
