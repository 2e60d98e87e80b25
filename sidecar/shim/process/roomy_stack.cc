#include "sidecar/shim/process/roomy_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace bsp::shim {
namespace {

constexpr std::size_t kEnough = std::size_t{256} << 10;
constexpr std::size_t kOwn = std::size_t{4} << 20;  // only the used part becomes resident

struct Errand {
  void (*function)(void*);
  void* argument;
  ucontext_t caller;
  ucontext_t own;
};

void run(unsigned high, unsigned low) {
  auto* const errand = reinterpret_cast<Errand*>(std::uintptr_t{high} << 32 | low);
  errand->function(errand->argument);
}

}  // namespace

// A stack that isn't the thread's own, as that of a coroutine, may have any size.
bool has_room() {
#if defined(__SANITIZE_THREAD__)
  return true;  // the sanitizer would have to be told
#else
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return true;  // the main thread, and no free descriptor
  void* lowest = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &lowest, &bytes);
  pthread_attr_destroy(&attributes);
  // The address of a local variable may be elsewhere: the address sanitizer keeps them on the heap.
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t left = here - reinterpret_cast<std::uintptr_t>(lowest);
  return left < bytes && left >= kEnough;
#endif
}

void call_on_own_stack(void (*function)(void*), void* argument) {
  void* const stack =
      mmap(nullptr, kOwn, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return function(argument);
  Errand errand{.function = function, .argument = argument, .caller = {}, .own = {}};
  getcontext(&errand.own);
  errand.own.uc_stack.ss_sp = stack;
  errand.own.uc_stack.ss_size = kOwn;
  errand.own.uc_link = &errand.caller;
  const auto address = reinterpret_cast<std::uintptr_t>(&errand);
  makecontext(&errand.own, reinterpret_cast<void (*)()>(run), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  swapcontext(&errand.caller, &errand.own);
  munmap(stack, kOwn);
}

}  // namespace bsp::shim
