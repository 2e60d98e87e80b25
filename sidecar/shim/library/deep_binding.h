// Libraries that prefer the symbols of their own dependencies to those of the process (RTLD_DEEPBIND, Julia's default): what they call
// of MPI and of the C library passes by preloaded libraries, so that each rank would be alone in its world.
//
// A library's slots are bound as it is loaded. So after such a dlopen the shim looks through what has been loaded with it, and
// redirects each slot that leads to libmpi's or the C library's function where the shim has one of that name. Where a library finds its
// own definition, or one of a library in between (an allocator, say), that stays.
#pragma once

namespace bsp::shim {

// After a dlopen that the shim could not wait for: redirects what it has loaded. Costs nothing unless there is such a one.
void bind_deeply_loaded();

}  // namespace bsp::shim
