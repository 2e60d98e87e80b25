#include "sidecar/shim/attributes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sidecar/shim/descriptors.h"
#include "sidecar/shim/error_codes.h"
#include "sidecar/shim/export.h"
#include "sidecar/shim/measure.h"
#include "sidecar/shim/state.h"

namespace bsp::shim {
namespace {

constexpr int kFirstKeyval = 1 << 20;  // above Open MPI's own keyvals

// The MPI callback types for one kind of object.
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

// Which language set the attribute or created its key (MPI 4.1, 19.3.7). C stores a pointer. Fortran stores an
// integer: MPI_Fint through the MPI-1 calls, MPI_Aint through the MPI-2 calls. Fortran reads a C pointer as an
// integer; C reads a Fortran integer through a pointer to it.
enum class Language { kC, kInteger, kAddress };

// Never held during a user callback: the callback may call MPI, which may wait for a thread that wants this lock.
std::mutex attributes_lock;
int next_keyval = kFirstKeyval;

// Runs a user callback.
template <class Function, class... Arguments>
int called(Function* function, Arguments... arguments) {
  const InProgram guard;
  return function(arguments...);
}

MPI_Fint number_of(MPI_Comm comm) { return MPI_Comm_c2f(comm); }
MPI_Fint number_of(MPI_Datatype type) { return MPI_Type_c2f(type); }

template <class Handle>
class Attributes {
 public:
  using Copy = typename Functions<Handle>::Copy;
  using Delete = typename Functions<Handle>::Delete;

  int create_keyval(Copy* copy, Delete* remove, void* extra, int* keyval, Language language = Language::kC) {
    std::lock_guard guard(attributes_lock);
    *keyval = next_keyval++;
    keyvals_[*keyval] = {copy, remove, extra, language, 0, false};
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

  int set(Handle handle, int keyval, void* value, Language by = Language::kC) {
    {
      std::lock_guard guard(attributes_lock);
      if (keyvals_.find(keyval) == keyvals_.end()) return MPI_ERR_KEYVAL;
    }
    if (const int rc = remove(handle, keyval); rc != MPI_SUCCESS && rc != MPI_ERR_KEYVAL) return rc;
    std::lock_guard guard(attributes_lock);
    auto key = keyvals_.find(keyval);
    if (key == keyvals_.end()) return MPI_ERR_KEYVAL;
    values_[handle].push_back(Value(keyval, value, by));
    ++key->second.uses;
    return MPI_SUCCESS;
  }

  int get(Handle handle, int keyval, void* value, int* flag) {
    std::lock_guard guard(attributes_lock);
    const Value* found = nullptr;
    const int rc = find(handle, keyval, found);
    *flag = found != nullptr ? 1 : 0;
    if (found != nullptr) *static_cast<void**>(value) = found->in_c();
    return rc;
  }

  int get_integer(Handle handle, int keyval, MPI_Aint* value, int* flag) {
    std::lock_guard guard(attributes_lock);
    const Value* found = nullptr;
    const int rc = find(handle, keyval, found);
    *flag = found != nullptr ? 1 : 0;
    if (found != nullptr) *value = found->in_fortran();
    return rc;
  }

  [[nodiscard]] bool has(int keyval) const {
    std::lock_guard guard(attributes_lock);
    return keyvals_.contains(keyval);
  }

  // Returns MPI_ERR_KEYVAL if the attribute isn't set.
  int remove(Handle handle, int keyval) {
    const std::optional<Use> use = find_use(handle, [&](const Value& v) { return v.keyval == keyval; });
    return use ? remove(handle, *use) : MPI_ERR_KEYVAL;
  }

  int copy(Handle from, Handle to) {
    for (const Use& use : uses_of(from)) {
      Value copied = use.value;
      int flag = 0;
      if (const int rc = call_copy(from, use, copied, flag); rc != MPI_SUCCESS) return rc;
      if (!flag) continue;
      std::lock_guard guard(attributes_lock);
      auto key = keyvals_.find(use.value.keyval);
      if (key == keyvals_.end()) continue;  // another thread has deleted it everywhere
      values_[to].push_back(copied);
      ++key->second.uses;
    }
    return MPI_SUCCESS;
  }

  // Attributes are deleted in reverse order of setting (MPI 4.1, 11.2.4).
  int remove_all(Handle handle) {
    for (;;) {
      const std::optional<Use> use = find_use(handle, [](const Value&) { return true; });
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
    Language language;  // of both callbacks
    int uses;
    bool freed;  // by the program; stays while attributes use it
  };
  class Value {
   public:
    Value(int key, void* stored, Language by) : keyval(key), value_(stored), by_(by) {
      if (by != Language::kC) integer_ = std::make_shared<MPI_Aint>(in_fortran());
    }
    bool operator==(const Value&) const = default;
    [[nodiscard]] void* in_c() const { return by_ == Language::kC ? value_ : integer_.get(); }
    [[nodiscard]] MPI_Aint in_fortran() const { return reinterpret_cast<MPI_Aint>(value_); }
    // The value after a C copy callback, which may have copied only the pointer to this value.
    [[nodiscard]] Value copied_as(void* pointer) const {
      return pointer == integer_.get() && by_ != Language::kC ? Value(keyval, value_, by_)
                                                              : Value(keyval, pointer, Language::kC);
    }

    int keyval;

   private:
    void* value_;
    Language by_;
    std::shared_ptr<MPI_Aint> integer_{};  // storage that C reads through a pointer
  };
  struct Use {
    Value value;
    Keyval key;
  };

  int find(Handle handle, int keyval, const Value*& value) const {
    if (!keyvals_.contains(keyval)) return MPI_ERR_KEYVAL;
    if (auto found = values_.find(handle); found != values_.end())
      for (const Value& v : found->second)
        if (v.keyval == keyval) value = &v;
    return MPI_SUCCESS;
  }

  // Integer is MPI_Fint for the MPI-1 functions and MPI_Aint for the MPI-2 functions.
  template <class Integer>
  static int copy_in_fortran(Handle from, const Use& use, Value& copied, int& flag, Language language) {
    using Function = void(MPI_Fint*, MPI_Fint*, Integer*, Integer*, Integer*, MPI_Fint*, MPI_Fint*);
    MPI_Fint object = number_of(from);
    MPI_Fint keyval = use.value.keyval;
    auto extra = static_cast<Integer>(reinterpret_cast<MPI_Aint>(use.key.extra));
    auto in = static_cast<Integer>(use.value.in_fortran());
    Integer out = 0;
    MPI_Fint logical = 0;
    MPI_Fint error = MPI_SUCCESS;
    const InProgram guard;
    in_fortran<Function>(use.key.copy)(&object, &keyval, &extra, &in, &out, &logical, &error);
    flag = logical;
    copied = Value(keyval, reinterpret_cast<void*>(static_cast<MPI_Aint>(out)), language);
    return error;
  }

  template <class Integer>
  static int remove_in_fortran(Handle handle, const Use& use) {
    using Function = void(MPI_Fint*, MPI_Fint*, Integer*, Integer*, MPI_Fint*);
    MPI_Fint object = number_of(handle);
    MPI_Fint keyval = use.value.keyval;
    auto extra = static_cast<Integer>(reinterpret_cast<MPI_Aint>(use.key.extra));
    auto value = static_cast<Integer>(use.value.in_fortran());
    MPI_Fint error = MPI_SUCCESS;
    const InProgram guard;
    in_fortran<Function>(use.key.remove)(&object, &keyval, &value, &extra, &error);
    return error;
  }

  static int call_copy(Handle from, const Use& use, Value& copied, int& flag) {
    switch (use.key.language) {
      case Language::kInteger:
        return copy_in_fortran<MPI_Fint>(from, use, copied, flag, Language::kInteger);
      case Language::kAddress:
        return copy_in_fortran<MPI_Aint>(from, use, copied, flag, Language::kAddress);
      case Language::kC:
        break;
    }
    void* out = nullptr;
    const int rc = called(use.key.copy, from, use.value.keyval, use.key.extra, use.value.in_c(), &out, &flag);
    copied = use.value.copied_as(out);
    return rc;
  }

  static int call_remove(Handle handle, const Use& use) {
    switch (use.key.language) {
      case Language::kInteger:
        return remove_in_fortran<MPI_Fint>(handle, use);
      case Language::kAddress:
        return remove_in_fortran<MPI_Aint>(handle, use);
      case Language::kC:
        break;
    }
    return called(use.key.remove, handle, use.value.keyval, use.value.in_c(), use.key.extra);
  }

  // The most recently set attribute of `handle` that matches.
  template <class Predicate>
  std::optional<Use> find_use(Handle handle, Predicate matches) {
    std::lock_guard guard(attributes_lock);
    auto found = values_.find(handle);
    if (found == values_.end()) return {};
    for (auto v = found->second.rbegin(); v != found->second.rend(); ++v)
      if (matches(*v)) return Use{*v, keyvals_.at(v->keyval)};
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
    const int rc = call_remove(handle, use);
    if (rc != MPI_SUCCESS) return rc;
    std::lock_guard guard(attributes_lock);
    auto found = values_.find(handle);
    auto key = keyvals_.find(use.value.keyval);
    if (found == values_.end() || key == keyvals_.end()) return rc;
    auto value = std::ranges::find(found->second, use.value);
    if (value == found->second.end()) return rc;  // the user's callback has already deleted it
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

// Window attributes are MPI's, because a window doesn't outlive its epoch; their keys are the program's, and do.
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

// The predefined attributes. Open MPI attaches them only to MPI_Init's world, which doesn't exist here.
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

// Errors raised here invoke the communicator's error handler, as MPI's own would. Datatype errors invoke that of
// MPI_COMM_WORLD.
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

namespace {

constexpr int kOfComms = 1;
constexpr int kOfTypes = 2;
constexpr int kOfWindows = 3;

template <class Function>
Function* next(const char* name, Function*) {
  return reinterpret_cast<Function*>(find_real(name));
}

void* as_pointer(MPI_Aint integer) { return reinterpret_cast<void*>(integer); }

template <class Integer>
int create_keyval_in_fortran(const char* name, int kind, void* copy, void* remove, int* keyval, Integer extra,
                             int flags, void* bindings, Language language) {
  const Call call;
  if (kind == kOfComms)
    return of_comms.create_keyval(reinterpret_cast<MPI_Comm_copy_attr_function*>(copy),
                                  reinterpret_cast<MPI_Comm_delete_attr_function*>(remove), as_pointer(extra), keyval,
                                  language);
  if (kind == kOfTypes)
    return of_types.create_keyval(reinterpret_cast<MPI_Type_copy_attr_function*>(copy),
                                  reinterpret_cast<MPI_Type_delete_attr_function*>(remove), as_pointer(extra), keyval,
                                  language);
  using Create = int(int, void*, void*, int*, Integer, int, void*);
  return next<Create>(name, nullptr)(kind, copy, remove, keyval, extra, flags, bindings);
}

template <class Integer>
int set_in_fortran(const char* name, int kind, void* object, void** hash, int keyval, Integer value, bool predefined,
                   Language language) {
  const Call call;
  if (kind == kOfComms && keyval >= kFirstKeyval)
    return of_comms.set(static_cast<MPI_Comm>(object), keyval, as_pointer(value), language);
  if (kind == kOfTypes && keyval >= kFirstKeyval)
    return of_types.set(static_cast<MPI_Datatype>(object), keyval, as_pointer(value), language);
  if (kind == kOfWindows) keyval = of_windows.real_of(keyval);
  using Set = int(int, void*, void**, int, Integer, bool);
  return next<Set>(name, nullptr)(kind, object, hash, keyval, value, predefined);
}

template <class Integer>
int get_in_fortran(const char* name, void* hash, int keyval, Integer* value, int* flag) {
  const Call call;
  MPI_Aint integer = 0;
  int rc = MPI_SUCCESS;
  if (of_comms.has(keyval)) {
    rc = of_comms.get_integer(from_fortran.comm, keyval, &integer, flag);
  } else if (of_types.has(keyval)) {
    rc = of_types.get_integer(from_fortran.type, keyval, &integer, flag);
  } else if (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) {
    int* found = nullptr;
    rc = get_predefined(from_fortran.comm, keyval, &found, flag);
    if (rc == MPI_SUCCESS && *flag) integer = *found;
  } else {
    using Get = int(void*, int, Integer*, int*);
    return next<Get>(name, nullptr)(hash, of_windows.real_of(keyval), value, flag);
  }
  if (rc == MPI_SUCCESS && *flag) *value = static_cast<Integer>(integer);
  return rc;
}

}  // namespace

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
  return real.Win_get_attr(window, of_windows.real_of(keyval), value, flag);
}
int MPI_Win_delete_attr(MPI_Win window, int keyval) {
  Call call;
  return real.Win_delete_attr(window, of_windows.real_of(keyval));
}

// The deprecated MPI-1 names.
int MPI_Keyval_create(MPI_Copy_function* copy, MPI_Delete_function* remove, int* keyval, void* extra_state) {
  return MPI_Comm_create_keyval(copy, remove, keyval, extra_state);
}
int MPI_Keyval_free(int* keyval) { return MPI_Comm_free_keyval(keyval); }
int MPI_Attr_put(MPI_Comm comm, int keyval, void* value) { return MPI_Comm_set_attr(comm, keyval, value); }
int MPI_Attr_get(MPI_Comm comm, int keyval, void* value, int* flag) {
  return MPI_Comm_get_attr(comm, keyval, value, flag);
}
int MPI_Attr_delete(MPI_Comm comm, int keyval) { return MPI_Comm_delete_attr(comm, keyval); }

// Called by the Fortran bindings (fortran.h). Kinds as in Open MPI's ompi_attribute_type_t; window attributes go to
// MPI. Errors are only returned, as in Open MPI.
#define BSP_FORTRAN_ATTRIBUTES(suffix, Integer, language)                                                           \
  BSP_EXPORT int ompi_attr_create_keyval_##suffix(int kind, void* copy, void* remove, int* keyval, Integer extra,   \
                                                  int flags, void* bindings) {                                      \
    return create_keyval_in_fortran<Integer>("ompi_attr_create_keyval_" #suffix, kind, copy, remove, keyval, extra, \
                                             flags, bindings, language);                                            \
  }                                                                                                                 \
  BSP_EXPORT int ompi_attr_set_##suffix(int kind, void* object, void** hash, int keyval, Integer value, bool own) { \
    return set_in_fortran<Integer>("ompi_attr_set_" #suffix, kind, object, hash, keyval, value, own, language);     \
  }                                                                                                                 \
  BSP_EXPORT int ompi_attr_get_##suffix(void* hash, int keyval, Integer* value, int* flag) {                        \
    return get_in_fortran<Integer>("ompi_attr_get_" #suffix, hash, keyval, value, flag);                            \
  }
BSP_FORTRAN_ATTRIBUTES(fint, MPI_Fint, Language::kInteger)
BSP_FORTRAN_ATTRIBUTES(aint, MPI_Aint, Language::kAddress)
#undef BSP_FORTRAN_ATTRIBUTES

}  // extern "C"
