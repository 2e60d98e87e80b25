// Whose a descriptor is: noted when it is made, by the thread that makes it. MPI's are those that a thread inside MPI makes (while a
// session opens or closes, or in a call of the program's) and those of the threads that MPI has started. What a thread makes
// while the program's own function runs in it, called back by MPI, is the program's.
#pragma once

namespace bsp::shim {

enum class Owner : unsigned char { kUnknown, kProgram, kMpi };

// kUnknown: inherited, closed, or made past the calls that are seen here.
Owner owner_of(int fd);

// While one lives, this thread works for MPI without having been called by the program.
class InMpi {
 public:
  InMpi();
  ~InMpi();
  InMpi(const InMpi&) = delete;
  InMpi& operator=(const InMpi&) = delete;
};

// While one lives, a function of the program's runs inside an MPI call.
class InProgram {
 public:
  InProgram();
  ~InProgram();
  InProgram(const InProgram&) = delete;
  InProgram& operator=(const InProgram&) = delete;

 private:
  int work_before_;
  int depth_before_;
};

// A descriptor was made by this thread (nothing, if negative): returns it.
int note_made(int fd);

}  // namespace bsp::shim
