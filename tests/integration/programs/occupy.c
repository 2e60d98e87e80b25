/* Takes the PID that a restored program will need: forks until a child has it, then waits. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const pid_t wanted = argc > 1 ? atoi(argv[1]) : 300;
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      if (getpid() == wanted)
        for (;;) pause();
      _exit(0);
    }
    if (child == wanted) pause();
    waitpid(child, NULL, 0);
    if (child > wanted) return 1;
  }
}
