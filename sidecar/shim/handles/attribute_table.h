// The attributes of all handles of one kind, with their keys.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sidecar/shim/handles/keyvals.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

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
template <>
struct Functions<MPI_Win> {
  using Copy = MPI_Win_copy_attr_function;
  using Delete = MPI_Win_delete_attr_function;
};

// Which language set the attribute or created its key (MPI 4.1, 19.3.7). C stores a pointer. Fortran stores an
// integer: MPI_Fint through the MPI-1 calls, MPI_Aint through the MPI-2 calls. Fortran reads a C pointer as an
// integer; C reads a Fortran integer through a pointer to it.
enum class Language { kC, kInteger, kAddress };

inline MPI_Fint number_of(MPI_Comm comm) { return MPI_Comm_c2f(comm); }
inline MPI_Fint number_of(MPI_Datatype type) { return MPI_Type_c2f(type); }
inline MPI_Fint number_of(MPI_Win window) { return MPI_Win_c2f(window); }

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

}  // namespace bsp::shim
