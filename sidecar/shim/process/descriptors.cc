// Intercepts the calls that create and close descriptors and start threads. Files are left out: leftovers.cc
// recognises them by name, and the C library often closes them internally, where it can't be intercepted.
#include "sidecar/shim/process/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/raw_syscall.h"
#include "sidecar/shim/process/threads.h"
#include "sidecar/shim/process/timer_descriptors.h"

namespace bsp::shim {
namespace {

constexpr int kMaxDescriptors = 65536;
std::atomic<Owner> owners[kMaxDescriptors];

// Per thread. Threads that MPI starts count as inside MPI from the beginning.
thread_local int internal_depth __attribute__((tls_model("initial-exec"))) = 0;
// Per thread. The MPI call depth at which the user callback runs.
thread_local int depth_of_program __attribute__((tls_model("initial-exec"))) = 0;

bool is_in_mpi() { return internal_depth != 0 || thread_state.depth > depth_of_program; }

// A vfork child closes its own descriptors but writes to its parent's memory.
std::atomic<pid_t> this_process{0};
void note_process() { this_process = getpid(); }
__attribute__((constructor)) void note_first_process() {
  note_process();
  pthread_atfork(nullptr, nullptr, note_process);
}

void note(int fd, Owner owner) {
  if (fd < 0 || fd >= kMaxDescriptors || getpid() != this_process) return;
  owners[fd].store(owner, std::memory_order_relaxed);
  timer_changes(fd);
}

// Whose it was isn't noted.
void close_now(int fd) { raw_syscall(SYS_close, {fd}); }

struct Start {
  void* (*function)(void*);
  void* argument;
};

void* run_mpi_thread(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  internal_depth = 1;
  return start.function(start.argument);
}

}  // namespace

Owner owner_of(int fd) {
  return fd >= 0 && fd < kMaxDescriptors ? owners[fd].load(std::memory_order_relaxed) : Owner::kUnknown;
}

std::vector<int> descriptors_of(Owner owner) {
  std::vector<int> found;
  for (int fd = 0; fd < kMaxDescriptors; ++fd)
    if (owner_of(fd) == owner) found.push_back(fd);
  return found;
}

InMpi::InMpi() { ++internal_depth; }
InMpi::~InMpi() { --internal_depth; }

InProgram::InProgram() : internal_depth_before_(internal_depth), depth_before_(depth_of_program) {
  internal_depth = 0;
  depth_of_program = thread_state.depth;
}
InProgram::~InProgram() {
  internal_depth = internal_depth_before_;
  depth_of_program = depth_before_;
}

int note_created(int fd) {
  note(fd, is_in_mpi() ? Owner::kMpi : Owner::kProgram);
  return fd;
}

int note_chosen(int fd) {
  if (fd < 0 || fd > STDERR_FILENO || !is_in_mpi()) return note_created(fd);
  const bool closes = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
  const int above = fcntl(fd, closes ? F_DUPFD_CLOEXEC : F_DUPFD, STDERR_FILENO + 1);
  if (above < 0) return note_created(fd);
  close_now(fd);
  return note_created(above);
}

StandardHeld::StandardHeld() {
  for (;;) {
    const int fd = ::open("/", O_PATH | O_CLOEXEC);
    if (fd >= 0 && fd <= STDERR_FILENO) {
      held_.push_back(fd);
      continue;
    }
    close_now(fd);
    return;
  }
}

// Unless another thread of the program has put a descriptor of its own there.
StandardHeld::~StandardHeld() {
  for (const int fd : held_)
    if ((fcntl(fd, F_GETFL) & O_PATH) != 0) close_now(fd);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

extern "C" {

// The calls that create one descriptor and return it.
#define BSP_MAKES(note, name, declared, passed, specifier) \
  BSP_EXPORT int name declared specifier {                 \
    static const auto next = BSP_NEXT(name);               \
    return note(next passed);                              \
  }
BSP_MAKES(note_chosen, eventfd, (unsigned count, int flags), (count, flags), noexcept)
BSP_MAKES(note_chosen, epoll_create, (int size), (size), noexcept)
BSP_MAKES(note_chosen, epoll_create1, (int flags), (flags), noexcept)
BSP_MAKES(note_chosen, timerfd_create, (clockid_t clock, int flags), (clock, flags), noexcept)
BSP_MAKES(note_created, signalfd, (int fd, const sigset_t* mask, int flags), (fd, mask, flags), noexcept)
BSP_MAKES(note_chosen, inotify_init, (), (), noexcept)
BSP_MAKES(note_chosen, inotify_init1, (int flags), (flags), noexcept)
BSP_MAKES(note_chosen, memfd_create, (const char* name, unsigned flags), (name, flags), noexcept)
BSP_MAKES(note_chosen, dup, (int fd), (fd), noexcept)
BSP_MAKES(note_created, dup2, (int from, int to), (from, to), noexcept)
BSP_MAKES(note_created, dup3, (int from, int to, int flags), (from, to, flags), noexcept)
#undef BSP_MAKES

BSP_EXPORT int pipe(int ends[2]) noexcept {
  static const auto next = BSP_NEXT(pipe);
  const int rc = next(ends);
  if (rc == 0) ends[0] = note_chosen(ends[0]), ends[1] = note_chosen(ends[1]);
  return rc;
}

BSP_EXPORT int pipe2(int ends[2], int flags) noexcept {
  static const auto next = BSP_NEXT(pipe2);
  const int rc = next(ends, flags);
  if (rc == 0) ends[0] = note_chosen(ends[0]), ends[1] = note_chosen(ends[1]);
  return rc;
}

// Before close(): another thread may get the number immediately afterwards.
BSP_EXPORT int close(int fd) {
  static const auto next = BSP_NEXT(close);
  const Owner before = owner_of(fd);
  note(fd, Owner::kUnknown);
  const int rc = next(fd);
  if (rc != 0 && errno == EBADF) note(fd, before);
  return rc;
}

BSP_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  static const auto next = BSP_NEXT(pthread_create);
  if (!is_in_mpi()) return next(thread, attributes, function, argument);
  auto* start = new (std::nothrow) Start{function, argument};
  if (start == nullptr) return EAGAIN;
  const int rc = next(thread, attributes, run_mpi_thread, start);
  if (rc != 0) delete start;
  return rc;
}

}  // extern "C"
