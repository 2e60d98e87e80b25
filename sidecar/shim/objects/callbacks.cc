// User callbacks that receive MPI handles: reduction operations and error handlers.
//
// MPI would pass real handles to the user's function, so a trampoline translates them. C has no closures: each
// operation takes its own trampoline from a pool of template instances.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {
namespace {

constexpr std::size_t kTrampolines = 128;

// The user's functions, one per trampoline. All objects of a function share its slot: it is written in one language. A
// slot outlives its objects because another thread may still be in MPI and call it.
template <class Function>
struct Slots {
  std::array<std::atomic<Function*>, kTrampolines> function{};
  std::array<std::atomic<bool>, kTrampolines> fortran{};  // takes Fortran arguments
  std::array<std::size_t, kTrampolines> objects{};
};

std::mutex callbacks_lock;
Slots<MPI_User_function> op_slots;
Slots<MPI_Comm_errhandler_function> errhandler_slots;
// Freed by the program, which may have got another handle since (MPI_Comm_get_errhandler).
std::vector<Errhandler*> freed_errhandlers;

using FortranOperation = void(void* in, void* inout, MPI_Fint* length, MPI_Fint* type);
using FortranErrhandler = void(MPI_Fint* object, MPI_Fint* code, ...);

MPI_Fint fortran_number_of(MPI_Comm comm) { return MPI_Comm_c2f(comm); }
MPI_Fint fortran_number_of(MPI_Win window) { return MPI_Win_c2f(window); }
MPI_Fint fortran_number_of(MPI_File file) { return MPI_File_c2f(file); }

template <std::size_t N>
void op_trampoline(void* in, void* inout, int* length, MPI_Datatype* type) {
  MPI_Datatype translated = virtual_of(*type);
  MPI_User_function* const function = op_slots.function[N].load();
  const InProgram guard;
  if (!op_slots.fortran[N].load()) return function(in, inout, length, &translated);
  MPI_Fint number = MPI_Type_c2f(translated);
  in_fortran<FortranOperation>(function)(in, inout, length, &number);
}

// While an error handler of the program runs. It may leave by longjmp or an exception; then the call has ended, so it counts
// as ended while the handler runs. Not where threads call MPI at the same time: a gate mustn't close under a handler.
class Handling {
 public:
  Handling() : depth_(state.multiple ? 0 : std::exchange(thread_state.depth, 0)) {
    if (depth_ != 0) measure.leave_mpi();
  }
  ~Handling() {
    if (depth_ == 0) return;
    measure.enter_mpi();
    thread_state.depth = depth_;
  }
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;

 private:
  const int depth_;
};

// `function` is the program's, whatever kind of object it was declared for.
template <class Handle>
void handle_error(Handle object, int* code, MPI_Comm_errhandler_function* function, bool fortran) {
  using InC = void(Handle*, int*, ...);
  Handle translated = virtual_of(object);
  const Handling ended;
  const ErrorsAfter::Suspended none_after;
  const InProgram guard;
  if (!fortran) return reinterpret_cast<InC*>(reinterpret_cast<void*>(function))(&translated, code);
  MPI_Fint number = fortran_number_of(translated);
  in_fortran<FortranErrhandler>(function)(&number, code);
}

template <std::size_t N>
void errhandler_trampoline(MPI_Comm* comm, int* code, ...) {
  handle_error(*comm, code, errhandler_slots.function[N].load(), errhandler_slots.fortran[N].load());
}

// For error handlers without their own trampoline: the object knows its handler.
template <class Handle>
void handle_error_of(Handle object, int* code, int (*get_errhandler)(Handle, MPI_Errhandler*)) {
  MPI_Errhandler handler = nullptr;
  if (get_errhandler(object, &handler) != MPI_SUCCESS) return;
  const Errhandler* known = errhandlers.find(handler);
  real.Errhandler_free(&handler);
  if (known != nullptr) handle_error(object, code, known->function, known->fortran);
}

void errhandler_of_comm(MPI_Comm* comm, int* code, ...) { handle_error_of(*comm, code, real.Comm_get_errhandler); }
void errhandler_of_window(MPI_Win* window, int* code, ...) { handle_error_of(*window, code, real.Win_get_errhandler); }
void errhandler_of_file(MPI_File* file, int* code, ...) { handle_error_of(*file, code, real.File_get_errhandler); }

template <std::size_t... N>
constexpr auto make_op_trampolines(std::index_sequence<N...>) {
  return std::array<MPI_User_function*, sizeof...(N)>{op_trampoline<N>...};
}
template <std::size_t... N>
constexpr auto make_errhandler_trampolines(std::index_sequence<N...>) {
  return std::array<MPI_Comm_errhandler_function*, sizeof...(N)>{errhandler_trampoline<N>...};
}

constexpr auto op_trampolines = make_op_trampolines(std::make_index_sequence<kTrampolines>());
constexpr auto errhandler_trampolines = make_errhandler_trampolines(std::make_index_sequence<kTrampolines>());

// Returns the function's slot or a free one, or -1 if there is none. With -1 MPI calls the user's function directly,
// which is correct as long as the function doesn't compare the datatype handle with one that it knows. Slots without
// objects become free when no pending operation can call them.
template <class Function>
int take_slot(Slots<Function>& slots, Function* function, bool fortran = false) {
  std::lock_guard guard(callbacks_lock);
  // Called under the lock, to include collectives that started before their operation was freed.
  const bool none_pending = !collective_pending();
  std::size_t free = kTrampolines;
  for (std::size_t i = 0; i < kTrampolines; ++i) {
    const bool is_free = slots.objects[i] == 0 && (slots.function[i] == nullptr || none_pending);
    if (is_free && free == kTrampolines) free = i;
    if (is_free || slots.function[i] != function) continue;
    ++slots.objects[i];
    return static_cast<int>(i);
  }
  if (free == kTrampolines) return -1;
  slots.function[free] = function;
  slots.fortran[free] = fortran;
  slots.objects[free] = 1;
  return static_cast<int>(free);
}

template <class Function>
void drop_slot(Slots<Function>& slots, int slot) {
  std::lock_guard guard(callbacks_lock);
  if (slot >= 0) --slots.objects[static_cast<std::size_t>(slot)];
}

}  // namespace

namespace {

int make_real(const Op& op, MPI_Op* made) {
  MPI_User_function* function = op.slot >= 0 ? op_trampolines[static_cast<std::size_t>(op.slot)] : op.function;
  const int rc = real.Op_create(function, op.commute, made);
  // Without a trampoline MPI must know itself that the function is in Fortran.
  if (rc == MPI_SUCCESS && op.slot < 0) op.view.copy_written(*made);
  return rc;
}

// Open MPI's own function, which handles Fortran callbacks.
int make_real_in_fortran(const Errhandler& handler, MPI_Errhandler* made) {
  using Create = MPI_Errhandler (*)(int kind, void* function, int language);
  static const auto create = reinterpret_cast<Create>(find_real("ompi_errhandler_create"));
  constexpr int kFortran = 1;
  *made = create(static_cast<int>(handler.of) + 1, reinterpret_cast<void*>(handler.function), kFortran);
  return *made != pre.errhandler_null ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int make_real(const Errhandler& handler, MPI_Errhandler* made) {
  if (handler.fortran && handler.of == Errhandler::Of::kSession) return make_real_in_fortran(handler, made);
  switch (handler.of) {
    case Errhandler::Of::kComm:
      return real.Comm_create_errhandler(
          handler.slot >= 0 ? errhandler_trampolines[static_cast<std::size_t>(handler.slot)] : errhandler_of_comm,
          made);
    case Errhandler::Of::kWin:
      return real.Win_create_errhandler(errhandler_of_window, made);
    case Errhandler::Of::kFile:
      return real.File_create_errhandler(errhandler_of_file, made);
    // Sessions are not virtual: their handlers get the program's own handle.
    case Errhandler::Of::kSession:
      return real.Session_create_errhandler(reinterpret_cast<MPI_Session_errhandler_function*>(handler.function), made);
  }
  return MPI_ERR_INTERN;
}

}  // namespace

int make_real(Op& op) {
  MPI_Op made = nullptr;
  const int rc = make_real(op, &made);
  ops.set_real(&op, made);
  return rc;
}

int make_real(Errhandler& handler) {
  MPI_Errhandler made = nullptr;
  const int rc = make_real(handler, &made);
  errhandlers.set_real(&handler, made);
  return rc;
}

namespace {

// An error handler that the program has freed lasts until a gate, so one that it makes again and again is the same.
Errhandler* take_freed(Errhandler::Of of, MPI_Comm_errhandler_function* function, bool fortran) {
  std::lock_guard guard(callbacks_lock);
  const auto found = std::ranges::find_if(freed_errhandlers, [&](const Errhandler* handler) {
    return handler->references <= 0 && handler->of == of && handler->function == function &&
           handler->fortran == fortran;
  });
  if (found == freed_errhandlers.end()) return nullptr;
  Errhandler* handler = *found;
  ++handler->references;
  freed_errhandlers.erase(found);
  return handler;
}

int create_errhandler(Errhandler::Of of, MPI_Comm_errhandler_function* function, MPI_Errhandler* out,
                      bool fortran = false) {
  if (Errhandler* again = take_freed(of, function, fortran)) {
    *out = reinterpret_cast<MPI_Errhandler>(again);
    return MPI_SUCCESS;
  }
  Errhandler* handler = errhandlers.create();
  handler->of = of;
  handler->function = function;
  handler->fortran = fortran;
  if (of == Errhandler::Of::kComm) handler->slot = take_slot(errhandler_slots, function, fortran);
  const int rc = make_real(*handler);
  if (rc != MPI_SUCCESS) {
    drop_slot(errhandler_slots, handler->slot);
    errhandlers.destroy(handler);
    return rc;
  }
  *out = reinterpret_cast<MPI_Errhandler>(handler);
  return rc;
}

}  // namespace

int release(Op* op) {
  if (--op->references > 0) return MPI_SUCCESS;
  const int slot = op->slot;
  const int rc = ops.free(op, real.Op_free);
  if (rc == MPI_SUCCESS) drop_slot(op_slots, slot);
  return rc;
}

void note_language(Op& op) {
  if (!op.view.is_written()) return;
  if (op.slot >= 0) {
    op_slots.fortran[static_cast<std::size_t>(op.slot)] = true;
  } else {
    op.view.copy_written(op.real);
    mpi_numbers_types = true;
  }
}

void forget(Errhandler* handler) {
  std::erase(freed_errhandlers, handler);
  drop_slot(errhandler_slots, handler->slot);
  errhandlers.destroy(handler);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

int MPI_Op_create(MPI_User_function* function, int commute, MPI_Op* op) {
  Call call;
  Op* object = ops.create();
  object->function = function;
  object->commute = commute;
  object->slot = take_slot(op_slots, function);
  const int rc = make_real(*object);
  if (rc != MPI_SUCCESS) {
    drop_slot(op_slots, object->slot);
    ops.destroy(object);
    return rc;
  }
  *op = reinterpret_cast<MPI_Op>(object);
  return rc;
}

int MPI_Op_free(MPI_Op* op) {
  Call call;
  Op* object = op != nullptr ? object_of<Op>(*op) : nullptr;
  if (object == nullptr) return real.Op_free(op);
  if (const int rc = release(object); rc != MPI_SUCCESS) return rc;
  *op = pre.op_null;
  return MPI_SUCCESS;
}

int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* errhandler) {
  Call call;
  return create_errhandler(Errhandler::Of::kComm, function, errhandler);
}

int MPI_Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* errhandler) {
  Call call;
  return create_errhandler(Errhandler::Of::kWin, reinterpret_cast<MPI_Comm_errhandler_function*>(function), errhandler);
}

int MPI_File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  Call call;
  return create_errhandler(Errhandler::Of::kFile, reinterpret_cast<MPI_Comm_errhandler_function*>(function),
                           errhandler);
}

int MPI_Session_create_errhandler(MPI_Session_errhandler_function* function, MPI_Errhandler* errhandler) {
  Call call;
  return create_errhandler(Errhandler::Of::kSession, reinterpret_cast<MPI_Comm_errhandler_function*>(function),
                           errhandler);
}

int MPI_Errhandler_free(MPI_Errhandler* errhandler) {
  Call call;
  Errhandler* handler = errhandler != nullptr ? object_of<Errhandler>(*errhandler) : nullptr;
  if (handler == nullptr) return real.Errhandler_free(errhandler);
  // Communicators may keep using an error handler that the program has freed, so its object stays until a gate finds
  // it unused (recipes.cc).
  if (--handler->references <= 0) {
    std::lock_guard guard(callbacks_lock);
    if (std::ranges::find(freed_errhandlers, handler) == freed_errhandlers.end()) freed_errhandlers.push_back(handler);
  }
  *errhandler = pre.errhandler_null;
  return MPI_SUCCESS;
}

// Called by the Fortran bindings. Kinds as in Open MPI's ompi_errhandler_type_t, from communicators (1) to sessions
// (4).
__attribute__((visibility("default"))) MPI_Errhandler ompi_errhandler_create(int kind, void* function, int) {
  Call call;
  MPI_Errhandler made = pre.errhandler_null;
  create_errhandler(static_cast<Errhandler::Of>(kind - 1), reinterpret_cast<MPI_Comm_errhandler_function*>(function),
                    &made, true);
  return made;
}

}  // extern "C"
