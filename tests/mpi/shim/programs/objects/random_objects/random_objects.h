/* What the parts of random_objects share. */
#ifndef BSP_TESTS_MPI_SHIM_RANDOM_OBJECTS_H
#define BSP_TESTS_MPI_SHIM_RANDOM_OBJECTS_H

#include "check.h"

/* Something that exists from one superstep to a later one. */
typedef struct Thing {
  const struct Kind* kind;
  int id;     /* unique, the same on all ranks */
  int last;   /* superstep in which it ends */
  void* data; /* of its kind */
} Thing;

/* All functions are collective over all ranks. */
typedef struct Kind {
  const char* name;
  void* (*make)(int id);
  void (*use)(void* data, int id, int s); /* in most supersteps of its life */
  void (*end)(void* data, int id);        /* frees `data` */
} Kind;

extern const Kind comm_kind, group_kind, type_kind, op_kind, attribute_kind;                       /* made.c */
extern const Kind wildcard_kind, message_kind, persistent_kind, collective_kind, partitioned_kind; /* requests.c */
extern const Kind window_kind, file_kind, thread_kind;                                             /* storage.c */

extern int rank, size;
extern MPI_Comm base; /* of all ranks; MPI_COMM_WORLD's messages all belong to wildcard_kind */
extern const char* directory;

/* A number below n that all ranks draw alike. */
int draw(int n);
/* Adds a result to what the run prints: the same with epoch changes and without. */
void note(long result);

static inline int right_of(int by) { return (rank + by) % size; }
static inline int left_of(int by) { return (rank + size - by % size) % size; }

/* Before another object is made: Open MPI 5.0 may hang if a communicator is made while MPI_Comm_idup makes one. */
void complete_idup(void);

static inline void* zeroed(size_t bytes) {
  void* memory = calloc(1, bytes);
  CHECK(memory != NULL);
  return memory;
}

#endif
