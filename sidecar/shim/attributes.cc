#include "sidecar/shim/attributes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sidecar/shim/descriptors.h"
#include "sidecar/shim/error_codes.h"
#include "sidecar/shim/measure.h"
#include "sidecar/shim/state.h"

namespace bsp::shim {
namespace {

constexpr int kFirstKeyval = 1 << 20;  // above all of Open MPI's

// MPI's type of the functions of one kind of object.
template <class Handle>
struct Functions;
template <>
struct Functions<MPI_Comm> {
  using Copy = MPI_Comm_copy_attr_function;
  using Delete = MPI_Comm_delete_attr_function;
};
template <>
struct Functions<MPI_Datatype> {
  using Copy = MPI_Type_copy_attr_function;
  using Delete = MPI_Type_delete_attr_function;
};

// Never held while a function of the program runs: that may call MPI, which may wait for a thread that wants the lock.
std::mutex attributes_lock;
int next_keyval = kFirstKeyval;

// The program's function.
template <class Function, class... Arguments>
int called(Function* function, Arguments... arguments) {
  const InProgram guard;
  return function(arguments...);
}

template <class Handle>
class Attributes {
 public:
  using Copy = typename Functions<Handle>::Copy;
  using Delete = typename Functions<Handle>::Delete;

  int create_keyval(Copy* copy, Delete* remove, void* extra, int* keyval) {
    std::lock_guard guard(attributes_lock);
    *keyval = next_keyval++;
    keyvals_[*keyval] = {copy, remove, extra, 0, false};
    return MPI_SUCCESS;
  }

  int free_keyval(int* keyval) {
    std::lock_guard guard(attributes_lock);
    auto found = keyvals_.find(*keyval);
    if (found == keyvals_.end() || found->second.freed) return MPI_ERR_KEYVAL;
    found->second.freed = true;
    drop(found);
    *keyval = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
  }

  int set(Handle handle, int keyval, void* value) {
    {
      std::lock_guard guard(attributes_lock);
      if (keyvals_.find(keyval) == keyvals_.end()) return MPI_ERR_KEYVAL;
    }
    if (const int rc = remove(handle, keyval); rc != MPI_SUCCESS && rc != MPI_ERR_KEYVAL) return rc;
    std::lock_guard guard(attributes_lock);
    auto key = keyvals_.find(keyval);
    if (key == keyvals_.end()) return MPI_ERR_KEYVAL;
    values_[handle].push_back({keyval, value});
    ++key->second.uses;
    return MPI_SUCCESS;
  }

  int get(Handle handle, int keyval, void* value, int* flag) {
    std::lock_guard guard(attributes_lock);
    *flag = 0;
    if (keyvals_.find(keyval) == keyvals_.end()) return MPI_ERR_KEYVAL;
    auto found = values_.find(handle);
    if (found == values_.end()) return MPI_SUCCESS;
    for (const Value& v : found->second)
      if (v.keyval == keyval) {
        *static_cast<void**>(value) = v.value;
        *flag = 1;
      }
    return MPI_SUCCESS;
  }

  // MPI_ERR_KEYVAL if the attribute isn't there.
  int remove(Handle handle, int keyval) {
    const std::optional<Use> use = use_of(handle, [&](const Value& v) { return v.keyval == keyval; });
    return use ? remove(handle, *use) : MPI_ERR_KEYVAL;
  }

  int copy(Handle from, Handle to) {
    for (const Use& use : uses_of(from)) {
      void* copied = nullptr;
      int flag = 0;
      const int rc = called(use.key.copy, from, use.value.keyval, use.key.extra, use.value.value, &copied, &flag);
      if (rc != MPI_SUCCESS) return rc;
      if (!flag) continue;
      std::lock_guard guard(attributes_lock);
      auto key = keyvals_.find(use.value.keyval);
      if (key == keyvals_.end()) continue;  // deleted everywhere meanwhile
      values_[to].push_back({use.value.keyval, copied});
      ++key->second.uses;
    }
    return MPI_SUCCESS;
  }

  // The one set last goes first (MPI 4.1, 11.2.4).
  int remove_all(Handle handle) {
    for (;;) {
      const std::optional<Use> use = use_of(handle, [](const Value&) { return true; });
      if (!use) break;
      if (const int rc = remove(handle, *use); rc != MPI_SUCCESS) return rc;
    }
    std::lock_guard guard(attributes_lock);
    values_.erase(handle);
    return MPI_SUCCESS;
  }

 private:
  struct Keyval {
    Copy* copy;
    Delete* remove;
    void* extra;
    int uses;
    bool freed;  // by the program; lives on while attributes use it
  };
  struct Value {
    int keyval;
    void* value;
    bool operator==(const Value&) const = default;
  };
  struct Use {
    Value value;
    Keyval key;
  };

  // The latest attribute of `handle` that is wanted.
  template <class Wanted>
  std::optional<Use> use_of(Handle handle, Wanted wanted) {
    std::lock_guard guard(attributes_lock);
    auto found = values_.find(handle);
    if (found == values_.end()) return {};
    for (auto v = found->second.rbegin(); v != found->second.rend(); ++v)
      if (wanted(*v)) return Use{*v, keyvals_.at(v->keyval)};
    return {};
  }

  std::vector<Use> uses_of(Handle handle) {
    std::lock_guard guard(attributes_lock);
    std::vector<Use> uses;
    if (auto found = values_.find(handle); found != values_.end())
      for (const Value& v : found->second) uses.push_back({v, keyvals_.at(v.keyval)});
    return uses;
  }

  int remove(Handle handle, const Use& use) {
    const int rc = called(use.key.remove, handle, use.value.keyval, use.value.value, use.key.extra);
    if (rc != MPI_SUCCESS) return rc;
    std::lock_guard guard(attributes_lock);
    auto found = values_.find(handle);
    auto key = keyvals_.find(use.value.keyval);
    if (found == values_.end() || key == keyvals_.end()) return rc;
    auto value = std::ranges::find(found->second, use.value);
    if (value == found->second.end()) return rc;  // the program's function has deleted it itself
    found->second.erase(value);
    --key->second.uses;
    drop(key);
    return rc;
  }

  void drop(typename std::map<int, Keyval>::iterator key) {
    if (key->second.freed && key->second.uses == 0) keyvals_.erase(key);
  }

  std::map<int, Keyval> keyvals_;
  std::unordered_map<Handle, std::vector<Value>> values_;
};

Attributes<MPI_Comm> of_comms;
Attributes<MPI_Datatype> of_types;

// MPI's own attributes. Open MPI hangs them on the world of MPI_Init only, which doesn't exist here.
int get_predefined(MPI_Comm comm, int keyval, void* value, int* flag) {
  const int rc = real.Comm_get_attr(to_real(comm), keyval, value, flag);
  if (rc == MPI_SUCCESS && *flag) return rc;
  static int tag_ub = 0x7fffffff;
  static int host = MPI_PROC_NULL;
  static int io = MPI_ANY_SOURCE;
  static int wtime_is_global = 0;
  static int appnum = 0;
  int* found = nullptr;
  switch (keyval) {
    case MPI_TAG_UB:
      found = &tag_ub;
      break;
    case MPI_HOST:
      found = &host;
      break;
    case MPI_IO:
      found = &io;
      break;
    case MPI_WTIME_IS_GLOBAL:
      found = &wtime_is_global;
      break;
    case MPI_APPNUM:
      found = &appnum;
      break;
    case MPI_LASTUSEDCODE:
      found = last_used_error_code();
      break;
    case MPI_UNIVERSE_SIZE:
      found = &state.size;
      break;
    default:
      return rc;
  }
  *static_cast<int**>(value) = found;
  *flag = 1;
  return MPI_SUCCESS;
}

int get_predefined(MPI_Datatype type, int keyval, void* value, int* flag) {
  return real.Type_get_attr(to_real(type), keyval, value, flag);
}

// An error of ours goes through the communicator's error handler, as MPI's own would; one of a datatype through
// that of the world.
int check(MPI_Comm comm, int rc) {
  if (rc == MPI_SUCCESS) return rc;
  real.Comm_call_errhandler(to_real(comm), rc);
  return rc;
}
int check(MPI_Datatype, int rc) { return check(pre.comm_world, rc); }

}  // namespace

int copy_attributes(MPI_Comm from, MPI_Comm to) { return check(from, of_comms.copy(from, to)); }
int copy_attributes(MPI_Datatype from, MPI_Datatype to) { return check(from, of_types.copy(from, to)); }
int delete_attributes(MPI_Comm comm) { return check(comm, of_comms.remove_all(comm)); }
int delete_attributes(MPI_Datatype type) { return check(type, of_types.remove_all(type)); }

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

// The same calls for communicators and datatypes.
#define BSP_ATTRIBUTE_CALLS(kind, Handle, table)                                                                   \
  int MPI_##kind##_create_keyval(MPI_##kind##_copy_attr_function* copy, MPI_##kind##_delete_attr_function* remove, \
                                 int* keyval, void* extra) {                                                       \
    Call call;                                                                                                     \
    return table.create_keyval(copy, remove, extra, keyval);                                                       \
  }                                                                                                                \
  int MPI_##kind##_free_keyval(int* keyval) {                                                                      \
    Call call;                                                                                                     \
    return check(pre.comm_world, table.free_keyval(keyval));                                                       \
  }                                                                                                                \
  int MPI_##kind##_set_attr(Handle handle, int keyval, void* value) {                                              \
    Call call;                                                                                                     \
    return check(handle, table.set(handle, keyval, value));                                                        \
  }                                                                                                                \
  int MPI_##kind##_get_attr(Handle handle, int keyval, void* value, int* flag) {                                   \
    Call call;                                                                                                     \
    if (keyval < kFirstKeyval) return get_predefined(handle, keyval, value, flag);                                 \
    return check(handle, table.get(handle, keyval, value, flag));                                                  \
  }                                                                                                                \
  int MPI_##kind##_delete_attr(Handle handle, int keyval) {                                                        \
    Call call;                                                                                                     \
    return check(handle, table.remove(handle, keyval));                                                            \
  }
BSP_ATTRIBUTE_CALLS(Comm, MPI_Comm, of_comms)
BSP_ATTRIBUTE_CALLS(Type, MPI_Datatype, of_types)
#undef BSP_ATTRIBUTE_CALLS

// The names of MPI-1.
int MPI_Keyval_create(MPI_Copy_function* copy, MPI_Delete_function* remove, int* keyval, void* extra_state) {
  return MPI_Comm_create_keyval(copy, remove, keyval, extra_state);
}
int MPI_Keyval_free(int* keyval) { return MPI_Comm_free_keyval(keyval); }
int MPI_Attr_put(MPI_Comm comm, int keyval, void* value) { return MPI_Comm_set_attr(comm, keyval, value); }
int MPI_Attr_get(MPI_Comm comm, int keyval, void* value, int* flag) {
  return MPI_Comm_get_attr(comm, keyval, value, flag);
}
int MPI_Attr_delete(MPI_Comm comm, int keyval) { return MPI_Comm_delete_attr(comm, keyval); }

}  // extern "C"
