// Tracks who owns each descriptor, by the thread that creates it. MPI owns those created by a thread inside MPI
// (while a session opens or closes, or within an MPI call of the program) and by the threads that MPI has started.
// What a thread creates in a user callback that MPI calls belongs to the program.
#pragma once

#include <vector>

namespace bsp::shim {

enum class Owner : unsigned char { kUnknown, kProgram, kMpi };

// kUnknown: inherited, closed, or created by a call that isn't intercepted.
Owner owner_of(int fd);
std::vector<int> descriptors_of(Owner owner);

// Marks this thread as working for MPI outside an MPI call of the program.
class InMpi {
 public:
  InMpi();
  ~InMpi();
  InMpi(const InMpi&) = delete;
  InMpi& operator=(const InMpi&) = delete;
};

// Marks a user callback inside an MPI call.
class InProgram {
 public:
  InProgram();
  ~InProgram();
  InProgram(const InProgram&) = delete;
  InProgram& operator=(const InProgram&) = delete;

 private:
  int internal_depth_before_;
  int depth_before_;
};

// While an object exists, none of the descriptors 0, 1 and 2 is free. The program may have closed them, and still write there: MPI, which
// opens files of its own, must not get their numbers.
class StandardHeld {
 public:
  StandardHeld();
  ~StandardHeld();
  StandardHeld(const StandardHeld&) = delete;
  StandardHeld& operator=(const StandardHeld&) = delete;

 private:
  std::vector<int> held_;
};

// Records that this thread created `fd` (unless negative) and returns it.
int note_created(int fd);
// The same of one whose number the kernel has chosen: MPI's is above 2.
int note_chosen(int fd);

}  // namespace bsp::shim
