/* For programs that report what they have lost in a move. */
#pragma once
#include <errno.h>
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
