/* random_objects SUPERSTEPS SEED DIRECTORY: MPI objects of every kind, made, used and freed in an order that SEED decides, so that any set
 * of them may be alive at an edge. Each checks itself. The last line says how many supersteps there were and a hash of all results: it
 * is the same without epoch changes. */
#include "random_objects/random_objects.h"

int rank, size;
MPI_Comm base;
const char* directory;

static unsigned generator = 1;
static unsigned long hash = 14695981039346656037UL;

int draw(int n) {
  generator ^= generator << 13, generator ^= generator >> 17, generator ^= generator << 5;
  return (int)(generator % (unsigned)n);
}

void note(long result) { hash = (hash ^ (unsigned long)result) * 1099511628211UL; }

enum { kMost = 24 };

static const Kind* const kinds[] = {&comm_kind,       &comm_kind,        &group_kind,   &type_kind,    &op_kind,
                                    &attribute_kind,  &wildcard_kind,    &message_kind, &message_kind, &persistent_kind,
                                    &collective_kind, &partitioned_kind, &window_kind,  &file_kind,    &thread_kind};
static Thing things[kMost];
static int count, ids;

/* RANDOM_OBJECTS: the names of the kinds to make, to find out which are at fault; all if it isn't set. */
static int is_wanted(const Kind* kind) {
  const char* wanted = getenv("RANDOM_OBJECTS");
  return wanted == NULL || strstr(wanted, kind->name) != NULL;
}

static void make_some(int s) {
  for (int more = draw(5); more > 0 && count < kMost; --more) {
    Thing* thing = &things[count];
    thing->kind = kinds[draw((int)(sizeof kinds / sizeof *kinds))];
    thing->id = ids++;
    thing->last = s + draw(12);
    if (!is_wanted(thing->kind)) continue;
    if (getenv("RANDOM_OBJECTS_SAY") && rank == 0)
      fprintf(stderr, "superstep %d: makes %s %d until %d\n", s, thing->kind->name, thing->id, thing->last);
    complete_idup();
    thing->data = thing->kind->make(thing->id);
    ++count;
  }
}

static void end_some(int s) {
  for (int i = 0; i < count;) {
    if (things[i].last > s) {
      ++i;
      continue;
    }
    things[i].kind->end(things[i].data, things[i].id);
    things[i] = things[--count];
  }
}

int main(int argc, char** argv) {
  int provided = -1;
  const int n = supersteps(argc, argv);
  generator = 2463534242u + (argc > 2 ? (unsigned)atoi(argv[2]) * 7919u : 0);
  directory = argc > 3 ? argv[3] : "/tmp";
  for (int i = 0; i < 10; ++i) draw(2);
  const int level = draw(2) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, level, &provided);
  CHECK(provided >= level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &base);
  static char buffer[1 << 20];
  MPI_Buffer_attach(buffer, sizeof buffer);

  int s = 0;
  for (; going_on(s, n); ++s) {
    make_some(s);
    if (draw(3) == 0) edge();
    for (int i = 0; i < count; ++i)
      if (draw(4) != 0) things[i].kind->use(things[i].data, things[i].id, s);
    edge();
    end_some(s);
    edge();
  }
  end_some(1 << 30);
  MPI_Barrier(base);
  void* detached;
  int bytes;
  MPI_Buffer_detach(&detached, &bytes);
  CHECK(detached == buffer);
  MPI_Comm_free(&base);
  MPI_Finalize();
  printf("ok random objects %d %016lx\n", s, hash);
  return 0;
}
