#include "sidecar/shim/handles/attributes.h"

#include "sidecar/shim/handles/attribute_table.h"
#include "sidecar/shim/handles/error_codes.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

Attributes<MPI_Comm> of_comms;
Attributes<MPI_Datatype> of_types;
Attributes<MPI_Win> of_windows;

// The predefined attributes. Open MPI attaches them only to MPI_Init's world, which doesn't exist here.
int get_predefined(MPI_Comm comm, int keyval, void* value, int* flag) {
  const int rc = real.Comm_get_attr(to_real(comm), keyval, value, flag);
  if (rc != MPI_SUCCESS || (*flag && keyval != MPI_TAG_UB)) return rc;
  static int tag_ub = kLargestTag;
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

// What the attribute's value points to; nullptr if it isn't one of a window's.
void* predefined_of(Win& window, int keyval) {
  switch (keyval) {
    case MPI_WIN_BASE:
      return window.base;
    case MPI_WIN_SIZE:
      return &window.bytes;
    case MPI_WIN_DISP_UNIT:
      return &window.displacement_unit;
    case MPI_WIN_CREATE_FLAVOR:
      return &window.flavor;
    case MPI_WIN_MODEL:
      return &window.model;
    default:
      return nullptr;
  }
}

bool is_of_windows(int keyval) {
  return keyval == MPI_WIN_BASE || keyval == MPI_WIN_SIZE || keyval == MPI_WIN_DISP_UNIT ||
         keyval == MPI_WIN_CREATE_FLAVOR || keyval == MPI_WIN_MODEL;
}

MPI_Aint predefined_in_fortran(Win& window, int keyval) {
  void* const value = predefined_of(window, keyval);
  if (keyval == MPI_WIN_BASE) return reinterpret_cast<MPI_Aint>(value);
  return keyval == MPI_WIN_SIZE ? *static_cast<MPI_Aint*>(value) : *static_cast<int*>(value);
}

// Whether attributes can belong to it; MPI reports an error if they can't.
bool has_attributes(MPI_Comm comm) { return comm_of(comm) != nullptr; }
bool has_attributes(MPI_Datatype type) { return type != nullptr && type != pre.datatype_null; }

// Errors raised here invoke the communicator's error handler, as MPI's own would. Datatype errors invoke that of
// MPI_COMM_WORLD.
int check(MPI_Comm comm, int rc) {
  if (rc == MPI_SUCCESS) return rc;
  real.Comm_call_errhandler(to_real(comm), rc);
  return rc;
}
int check(MPI_Datatype, int rc) { return check(pre.comm_world, rc); }
int check(MPI_Win window, int rc) {
  if (rc != MPI_SUCCESS) real.Win_call_errhandler(to_real(window), rc);
  return rc;
}

}  // namespace

int copy_attributes(MPI_Comm from, MPI_Comm to) { return check(from, of_comms.copy(from, to)); }
int copy_attributes(MPI_Datatype from, MPI_Datatype to) { return check(from, of_types.copy(from, to)); }
int delete_attributes(MPI_Comm comm) { return check(comm, of_comms.remove_all(comm)); }
int delete_attributes(MPI_Datatype type) { return check(type, of_types.remove_all(type)); }
int delete_attributes(MPI_Win window) { return check(window, of_windows.remove_all(window)); }

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
  if (kind == kOfWindows)
    return of_windows.create_keyval(reinterpret_cast<MPI_Win_copy_attr_function*>(copy),
                                    reinterpret_cast<MPI_Win_delete_attr_function*>(remove), as_pointer(extra), keyval,
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
  if (kind == kOfWindows && keyval >= kFirstKeyval)
    return of_windows.set(static_cast<MPI_Win>(object), keyval, as_pointer(value), language);
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
  } else if (of_windows.has(keyval)) {
    rc = of_windows.get_integer(from_fortran.window, keyval, &integer, flag);
  } else if (Win* window = object_of<Win>(from_fortran.window); window != nullptr && is_of_windows(keyval)) {
    *flag = 1;
    integer = predefined_in_fortran(*window, keyval);
  } else if (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) {
    int* found = nullptr;
    rc = get_predefined(from_fortran.comm, keyval, &found, flag);
    if (rc == MPI_SUCCESS && *flag) integer = *found;
  } else {
    using Get = int(void*, int, Integer*, int*);
    return next<Get>(name, nullptr)(hash, keyval, value, flag);
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
    if (!has_attributes(handle)) return real.kind##_set_attr(handle, keyval, value);                               \
    return check(handle, table.set(handle, keyval, value));                                                        \
  }                                                                                                                \
  int MPI_##kind##_get_attr(Handle handle, int keyval, void* value, int* flag) {                                   \
    Call call;                                                                                                     \
    if (keyval < kFirstKeyval) return get_predefined(handle, keyval, value, flag);                                 \
    if (!has_attributes(handle)) return real.kind##_get_attr(handle, keyval, value, flag);                         \
    return check(handle, table.get(handle, keyval, value, flag));                                                  \
  }                                                                                                                \
  int MPI_##kind##_delete_attr(Handle handle, int keyval) {                                                        \
    Call call;                                                                                                     \
    if (!has_attributes(handle)) return real.kind##_delete_attr(handle, keyval);                                   \
    return check(handle, table.remove(handle, keyval));                                                            \
  }
BSP_ATTRIBUTE_CALLS(Comm, MPI_Comm, of_comms)
BSP_ATTRIBUTE_CALLS(Type, MPI_Datatype, of_types)
#undef BSP_ATTRIBUTE_CALLS

// Those of a window. MPI reports wrong windows, and wrong keys of windows.
int MPI_Win_create_keyval(MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* remove, int* keyval,
                          void* extra) {
  Call call;
  return of_windows.create_keyval(copy, remove, extra, keyval);
}
int MPI_Win_free_keyval(int* keyval) {
  Call call;
  return keyval != nullptr && of_windows.has(*keyval) ? check(pre.comm_world, of_windows.free_keyval(keyval))
                                                      : real.Win_free_keyval(keyval);
}
int MPI_Win_set_attr(MPI_Win window, int keyval, void* value) {
  Call call;
  if (!is_ours(window) || !of_windows.has(keyval)) return real.Win_set_attr(to_real(window), keyval, value);
  return check(window, of_windows.set(window, keyval, value));
}
int MPI_Win_get_attr(MPI_Win window, int keyval, void* value, int* flag) {
  Call call;
  Win* object = object_of<Win>(window);
  if (object == nullptr) return real.Win_get_attr(window, keyval, value, flag);
  if (is_of_windows(keyval)) {
    *static_cast<void**>(value) = predefined_of(*object, keyval);
    *flag = 1;
    return MPI_SUCCESS;
  }
  if (!of_windows.has(keyval)) return real.Win_get_attr(object->real, keyval, value, flag);
  return check(window, of_windows.get(window, keyval, value, flag));
}
int MPI_Win_delete_attr(MPI_Win window, int keyval) {
  Call call;
  if (!is_ours(window) || !of_windows.has(keyval)) return real.Win_delete_attr(to_real(window), keyval);
  return check(window, of_windows.remove(window, keyval));
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

// Called by the Fortran bindings (fortran.h). Kinds as in Open MPI's ompi_attribute_type_t. Errors are only returned,
// as in Open MPI.
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
