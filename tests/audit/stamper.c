/* stamper FILE RANK [POD]: a rank that computes for ever, for the copy checker. Without POD it uses the host name. */
#include <stdio.h>
#include <stdlib.h>

#include "stamp.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  for (long superstep = 0;; ++superstep) {
    if (stamp(argv[1], atoi(argv[2]), argc == 4 ? argv[3] : NULL, superstep / 100) != 0) {
      perror(argv[1]);
      return 1;
    }
    const struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
  }
}
