// Closing and opening MPI takes more stack than an MPI call, for which the program may have made a thread's stack just large enough (16 KiB
// are legal).
#pragma once

namespace bsp::shim {

// Whether this thread's stack has room for it.
bool has_room();

void call_on_own_stack(void (*function)(void*), void* argument);

template <class Function>
void with_room(Function function) {
  if (has_room()) return function();
  call_on_own_stack([](void* one) { (*static_cast<Function*>(one))(); }, &function);
}

}  // namespace bsp::shim
