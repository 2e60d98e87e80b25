/* For programs that stop at gates as gated.c does and say what they have lost. */
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
    FILE* told = fopen("/run/bsp/epoch", "r");
    if (!told) continue;
    if (fscanf(told, "%ld", &next) != 1) next = 0;
    fclose(told);
  } while (next <= epoch);
  epoch = next;
}
