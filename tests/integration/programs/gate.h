/* For programs that stop at gates like gated.c and report what they have lost. */
#pragma once
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lost = 0;
static void loss(const char* what, const char* why) {
  fprintf(stderr, "lost: %s: %s (%s)\n", what, why, strerror(errno));
  lost = 1;
  errno = 0;
}
static void must(int well, const char* what) {
  if (well) return;
  fprintf(stderr, "failed: %s (%s)\n", what, strerror(errno));
  exit(99);
}

static long epoch = 0;
static void stop_until_next_epoch(void) {
  long next = 0;
  do {
    raise(SIGSTOP);
    FILE* file = fopen("/run/bsp/epoch", "r");
    if (!file) continue;
    if (fscanf(file, "%ld", &next) != 1) next = 0;
    fclose(file);
  } while (next <= epoch);
  epoch = next;
}
