// What the shim has to say on the program's stderr; one line, with the rank where it is known.
#pragma once

namespace bsp::shim {

__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

// Says it and ends the process with status 1 (without exit handlers: MPI may be half open).
[[noreturn]] __attribute__((format(printf, 1, 2))) void die(const char* format, ...);

}  // namespace bsp::shim
