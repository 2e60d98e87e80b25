#include "sidecar/shim/window_keyvals.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "sidecar/shim/keyvals.h"
#include "sidecar/shim/measure.h"
#include "sidecar/shim/state.h"

namespace bsp::shim {
namespace {

class WindowKeyvals {
 public:
  // No copy callback: no call of MPI duplicates a window.
  int create(MPI_Win_delete_attr_function* remove, void* extra, int* keyval) {
    std::lock_guard guard(attributes_lock);
    *keyval = next_keyval++;
    keyvals_[*keyval] = std::make_unique<Keyval>(Keyval{.remove = remove, .extra = extra, .number = *keyval});
    return MPI_SUCCESS;
  }

  int free(int* keyval) {
    std::lock_guard guard(attributes_lock);
    const auto found = keyvals_.find(*keyval);
    if (found == keyvals_.end() || found->second->freed) return real.Win_free_keyval(keyval);  // Fortran's, or an error
    Keyval& key = *found->second;
    if (key.epoch == state.epoch) real.Win_free_keyval(&key.real);  // MPI keeps it while attributes use it
    key.freed = true;
    if (key.uses == 0) keyvals_.erase(found);
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
  }

  // MPI's keyval in this epoch; `keyval` itself if it isn't one of these.
  int real_of(int keyval) {
    std::lock_guard guard(attributes_lock);
    const auto found = keyvals_.find(keyval);
    if (found == keyvals_.end()) return keyval;
    Keyval& key = *found->second;
    if (key.epoch != state.epoch)
      must(real.Win_create_keyval(not_copied, removed, &key.real, &key), "creating a window keyval");
    key.epoch = state.epoch;
    return key.real;
  }

  int set(MPI_Win window, int keyval, void* value) {
    const int rc = real.Win_set_attr(window, real_of(keyval), value);
    std::lock_guard guard(attributes_lock);
    if (const auto found = keyvals_.find(keyval); rc == MPI_SUCCESS && found != keyvals_.end()) ++found->second->uses;
    return rc;
  }

 private:
  struct Keyval {
    MPI_Win_delete_attr_function* remove;
    void* extra;
    int number;  // the program's
    int real = MPI_KEYVAL_INVALID;
    std::optional<std::uint64_t> epoch{};  // in which `real` was created
    int uses = 0;
    bool freed = false;  // by the program; stays while attributes use it
  };

  static int not_copied(MPI_Win, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  static int removed(MPI_Win window, int, void* value, void* of);

  std::map<int, std::unique_ptr<Keyval>> keyvals_;
};

WindowKeyvals of_windows;

// The program's callback gets its own keyval.
int WindowKeyvals::removed(MPI_Win window, int, void* value, void* of) {
  const auto* key = static_cast<Keyval*>(of);
  const int number = key->number;
  if (const int rc = called(key->remove, window, number, value, key->extra); rc != MPI_SUCCESS) return rc;
  std::lock_guard guard(attributes_lock);
  const auto found = of_windows.keyvals_.find(number);
  if (--found->second->uses == 0 && found->second->freed) of_windows.keyvals_.erase(found);
  return MPI_SUCCESS;
}

}  // namespace

int real_window_keyval(int keyval) { return of_windows.real_of(keyval); }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

int MPI_Win_create_keyval(MPI_Win_copy_attr_function*, MPI_Win_delete_attr_function* remove, int* keyval, void* extra) {
  Call call;
  return of_windows.create(remove, extra, keyval);
}
int MPI_Win_free_keyval(int* keyval) {
  Call call;
  return of_windows.free(keyval);
}
int MPI_Win_set_attr(MPI_Win window, int keyval, void* value) {
  Call call;
  return of_windows.set(window, keyval, value);
}
int MPI_Win_get_attr(MPI_Win window, int keyval, void* value, int* flag) {
  Call call;
  return real.Win_get_attr(window, real_window_keyval(keyval), value, flag);
}
int MPI_Win_delete_attr(MPI_Win window, int keyval) {
  Call call;
  return real.Win_delete_attr(window, real_window_keyval(keyval));
}

}  // extern "C"
