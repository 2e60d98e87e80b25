// Prints a one-line message on the program's stderr, with the rank if known.
#pragma once

namespace bsp::shim {

__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

// The same, and every attempt would end so (crds/refusal.h). The caller ends the program, with another status than 0.
__attribute__((format(printf, 1, 2))) void say_verdict(const char* format, ...);

// Prints the message and exits with status 1 (without exit handlers: MPI may be half open).
[[noreturn]] __attribute__((format(printf, 1, 2))) void die(const char* format, ...);

// The same where MPI has failed between two epochs, mostly since another rank was lost (names::kEpochFailed).
[[noreturn]] void die_between_epochs(const char* what, const char* why);

// The same for what will fail alike in every attempt, so the job isn't restarted.
[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char* format, ...);

}  // namespace bsp::shim
