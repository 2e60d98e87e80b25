/* Shared by the calls of every procedure. */
#ifndef BSP_EVERY_FIXTURES_H
#define BSP_EVERY_FIXTURES_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int called[512];
static volatile int latest = -1;
static const char* const* trace = NULL;
static inline void note(int procedure) {
  called[latest = procedure] = 1;
  if (trace != NULL) fprintf(stderr, "%s\n", trace[procedure]);
}

#include "every_procedure.gen.h" /* from here on every call of MPI is recorded */

enum { kMost = 16 };
static int rank, size, number, other_number, flag;
static int given[256], taken[256], ones[kMost], places[kMost], some_ints[kMost];
static MPI_Aint byte_places[kMost], address;
static MPI_Datatype ints[kMost];
static MPI_Comm grid; /* Cartesian, periodic in its only dimension */
static MPI_Request request;
static MPI_Status status;
static char text[MPI_MAX_INFO_VAL > 4096 ? MPI_MAX_INFO_VAL : 4096];

static void finish(MPI_Request* one, int persistent) {
  if (persistent) MPI_Start(one);
  MPI_Wait(one, MPI_STATUS_IGNORE);
  if (persistent) MPI_Request_free(one);
}

#endif
