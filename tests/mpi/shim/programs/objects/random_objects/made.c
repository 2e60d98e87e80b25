/* Communicators, groups, datatypes, operations, attributes and error handlers of random_objects. */
#include "random_objects.h"

/* --- Communicators -------------------------------------------------------------------------------------------- */

enum How { kDup, kSplit, kCreate, kCreateGroup, kIdup, kCart, kGraph, kDistGraph, kInter, kMerged, kWithInfo, kHows };

typedef struct {
  enum How how;
  MPI_Comm comm;       /* MPI_COMM_NULL where this rank isn't a member */
  MPI_Request request; /* of MPI_Comm_idup */
  int hint;
} Made;

static Made* pending; /* by MPI_Comm_idup */

void complete_idup(void) {
  if (pending != NULL) MPI_Wait(&pending->request, MPI_STATUS_IGNORE);
  pending = NULL;
}

static MPI_Comm half_of_all(int by) {
  MPI_Comm half;
  MPI_Comm_split(base, rank % by, rank, &half);
  return half;
}

static MPI_Comm between_halves(int tag) {
  MPI_Comm half = half_of_all(2), inter;
  MPI_Intercomm_create(half, 0, base, 1 - rank % 2, tag, &inter);
  MPI_Comm_free(&half);
  return inter;
}

static void make_graph(MPI_Comm* made) {
  int index[16], edges[32];
  for (int i = 0; i < size; ++i)
    index[i] = 2 * (i + 1), edges[2 * i] = (i + size - 1) % size, edges[2 * i + 1] = (i + 1) % size;
  MPI_Graph_create(base, size, index, edges, 0, made);
}

static void* make_comm(int id) {
  Made* made = zeroed(sizeof *made);
  made->how = (enum How)draw(kHows);
  made->comm = MPI_COMM_NULL;
  made->request = MPI_REQUEST_NULL;
  const int by = 1 + draw(3), shift = draw(size), left = left_of(1 + shift), right = right_of(1 + shift);
  int dims[2] = {0, 0}, periods[2] = {draw(2), 1};
  MPI_Group all, some;
  MPI_Comm inter;
  MPI_Info info;
  MPI_Comm_group(base, &all);
  int range[1][3] = {{shift, size - 1, by}};
  MPI_Group_range_incl(all, 1, range, &some);
  const int is_member = rank >= shift && (rank - shift) % by == 0;
  switch (made->how) {
    case kDup:
      MPI_Comm_dup(MPI_COMM_WORLD, &made->comm);
      break;
    case kSplit:
      MPI_Comm_split(base, (rank + shift) % by, draw(2) ? rank : -rank, &made->comm);
      break;
    case kCreate:
      MPI_Comm_create(base, some, &made->comm);
      CHECK((made->comm != MPI_COMM_NULL) == is_member);
      break;
    case kCreateGroup:
      if (is_member) MPI_Comm_create_group(base, some, id, &made->comm);
      break;
    case kIdup:
      MPI_Comm_idup(base, &made->comm, &made->request);
      pending = made;
      break;
    case kCart:
      MPI_Dims_create(size, 2, dims);
      MPI_Cart_create(base, 2, dims, periods, 0, &made->comm);
      break;
    case kGraph:
      make_graph(&made->comm);
      break;
    case kDistGraph:
      MPI_Dist_graph_create_adjacent(base, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                     &made->comm);
      break;
    case kInter:
      made->comm = between_halves(id);
      break;
    case kMerged:
      inter = between_halves(id);
      MPI_Intercomm_merge(inter, rank % 2, &made->comm);
      MPI_Comm_free(&inter);
      break;
    default:
      MPI_Info_create(&info);
      MPI_Info_set(info, "mpi_assert_exact_length", "true");
      MPI_Comm_dup_with_info(base, info, &made->comm);
      MPI_Info_free(&info);
      made->hint = 1;
  }
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

static void use_topology(MPI_Comm comm) {
  int topology, n = 0, out = 0, weighted, of[2], periods[2], at[2], back = -1, mine;
  MPI_Topo_test(comm, &topology);
  MPI_Comm_rank(comm, &mine);
  note(topology);
  if (topology == MPI_CART) {
    MPI_Cart_get(comm, 2, of, periods, at);
    MPI_Cart_rank(comm, at, &back);
    CHECK(back == mine);
    note(of[0] * 100 + of[1] + periods[0]);
  } else if (topology == MPI_GRAPH) {
    MPI_Graph_neighbors_count(comm, mine, &n);
    CHECK(n == 2);
  } else if (topology == MPI_DIST_GRAPH) {
    int from = -1, to = rank;
    MPI_Dist_graph_neighbors_count(comm, &n, &out, &weighted);
    CHECK(n == 1 && out == 1);
    MPI_Neighbor_allgather(&to, 1, MPI_INT, &from, 1, MPI_INT, comm);
    note(from);
  }
}

static void use_comm(void* data, int id, int s) {
  Made* made = data;
  if (made == pending) complete_idup();
  if (made->comm == MPI_COMM_NULL) return;
  int mine, n, sum = -1, value = id + s + rank, flag = 0;
  MPI_Comm_rank(made->comm, &mine);
  MPI_Comm_size(made->comm, &n);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, made->comm);
  note(sum);
  if (made->how == kInter) {
    int theirs, got = -1;
    MPI_Comm_remote_size(made->comm, &theirs);
    const int to = mine < theirs ? mine : MPI_PROC_NULL;
    MPI_Sendrecv(&value, 1, MPI_INT, to, 3, &got, 1, MPI_INT, to, 3, made->comm, MPI_STATUS_IGNORE);
    note(got);
    return;
  }
  int got = -1;
  MPI_Sendrecv(&value, 1, MPI_INT, (mine + 1) % n, 3, &got, 1, MPI_INT, (mine + n - 1) % n, MPI_ANY_TAG, made->comm,
               MPI_STATUS_IGNORE);
  note(got);
  use_topology(made->comm);
  if (made->hint) {
    MPI_Info info;
    char hint[8] = "";
    MPI_Comm_get_info(made->comm, &info);
    MPI_Info_get(info, "mpi_assert_exact_length", 7, hint, &flag);
    MPI_Info_free(&info);
    note(flag);
  }
}

static void end_comm(void* data, int id) {
  (void)id;
  Made* made = data;
  if (made == pending) complete_idup();
  if (made->comm != MPI_COMM_NULL) MPI_Comm_free(&made->comm);
  free(made);
}

const Kind comm_kind = {"communicator", make_comm, use_comm, end_comm};

/* --- Groups ----------------------------------------------------------------------------------------------------- */

static void* make_group(int id) {
  (void)id;
  MPI_Group all, one, other, *made = zeroed(sizeof *made);
  MPI_Comm_group(draw(2) ? base : MPI_COMM_WORLD, &all);
  int some[1][3] = {{draw(size), size - 1, 1 + draw(2)}}, others[1][3] = {{0, draw(size), 1}};
  MPI_Group_range_incl(all, 1, some, &one);
  MPI_Group_range_excl(all, 1, others, &other);
  const int how = draw(3);
  (how == 0 ? MPI_Group_union : how == 1 ? MPI_Group_intersection : MPI_Group_difference)(one, other, made);
  MPI_Group_free(&all);
  MPI_Group_free(&one);
  MPI_Group_free(&other);
  return made;
}

static void use_group(void* data, int id, int s) {
  (void)id, (void)s;
  MPI_Group all, *made = data;
  int n = -1, ranks[64], of_all[64];
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_size(*made, &n);
  for (int i = 0; i < n; ++i) ranks[i] = i;
  MPI_Group_translate_ranks(*made, n, ranks, all, of_all);
  for (int i = 0; i < n; ++i) note(of_all[i]);
  MPI_Group_free(&all);
}

static void end_group(void* data, int id) {
  (void)id;
  MPI_Group* made = data;
  MPI_Group_free(made);
  free(made);
}

const Kind group_kind = {"group", make_group, use_group, end_group};

/* --- Datatypes ---------------------------------------------------------------------------------------------------- */

enum { kInts = 64 };

static MPI_Datatype make_derived(MPI_Datatype of, int depth) {
  const int lengths[2] = {1 + draw(2), 1}, places[2] = {0, 3}, sizes[2] = {4, 3}, parts[2] = {2, 2}, starts[2] = {1, 0};
  const MPI_Aint bytes[2] = {0, 16};
  MPI_Datatype made, inner;
  const MPI_Datatype types[2] = {of, MPI_INT};
  switch (draw(7)) {
    case 0:
      MPI_Type_vector(2, 1, 2, of, &made);
      break;
    case 1:
      MPI_Type_indexed(2, lengths, places, of, &made);
      break;
    case 2:
      MPI_Type_create_struct(2, lengths, bytes, types, &made);
      break;
    case 3:
      MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &made);
      break;
    case 4:
      MPI_Type_create_resized(of, 0, 24, &made);
      break;
    case 5:
      MPI_Type_dup(of, &made);
      break;
    default:
      MPI_Type_contiguous(2, of, &made);
  }
  if (depth == 0) return made;
  inner = made;
  made = make_derived(inner, depth - 1);
  MPI_Type_free(&inner);
  return made;
}

typedef struct {
  MPI_Datatype type;
  int committed;
} Type;

static void* make_type(int id) {
  (void)id;
  Type* made = zeroed(sizeof *made);
  made->type = make_derived(MPI_INT, draw(2));
  made->committed = draw(2);
  if (made->committed) MPI_Type_commit(&made->type);
  return made;
}

static void use_type(void* data, int id, int s) {
  Type* made = data;
  int bytes = -1, in[kInts], out[kInts];
  MPI_Aint lower, extent;
  if (!made->committed) MPI_Type_commit(&made->type), made->committed = 1;
  MPI_Type_size(made->type, &bytes);
  MPI_Type_get_extent(made->type, &lower, &extent);
  note(bytes), note(lower), note(extent);
  for (int i = 0; i < kInts; ++i) out[i] = id * 1000 + s * 100 + i, in[i] = -1;
  MPI_Sendrecv(out, 1, made->type, right_of(1), id, in, 1, made->type, left_of(1), id, base, MPI_STATUS_IGNORE);
  for (int i = 0; i < kInts; ++i) {
    CHECK(in[i] == -1 || in[i] == out[i]);
    note(in[i]);
  }
}

static void end_type(void* data, int id) {
  (void)id;
  Type* made = data;
  MPI_Type_free(&made->type);
  free(made);
}

const Kind type_kind = {"datatype", make_type, use_type, end_type};

/* --- Operations ---------------------------------------------------------------------------------------------------- */

static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) /* x -> a x + b, as pairs: not commutative */
    if (i % 2 == 0) {
      int* first = (int*)in + i;
      int* second = (int*)inout + i;
      second[1] = second[0] * first[1] + second[1];
      second[0] = second[0] * first[0];
    }
}

static void add_odd(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i] | 1;
}

typedef struct {
  MPI_Op op;
  int commutes;
} Op;

static void* make_op(int id) {
  (void)id;
  Op* made = zeroed(sizeof *made);
  made->commutes = draw(2);
  MPI_Op_create(made->commutes ? add_odd : compose, made->commutes, &made->op);
  return made;
}

static void use_op(void* data, int id, int s) {
  Op* made = data;
  int in[2] = {rank + 2, id + s}, out[2] = {0, 0}, commutes = -1;
  MPI_Op_commutative(made->op, &commutes);
  CHECK(commutes == made->commutes);
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Scan(in, out, 2, MPI_INT, made->op, base);
  MPI_Type_free(&pair);
  if (!made->commutes) note(out[0]), note(out[1]);
}

static void end_op(void* data, int id) {
  (void)id;
  Op* made = data;
  MPI_Op_free(&made->op);
  free(made);
}

const Kind op_kind = {"operation", make_op, use_op, end_op};

/* --- Attributes, error handlers, infos ---------------------------------------------------------------------------- */

typedef struct {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Info info;
  int key, value;
} Attribute;

static int calls;
static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++calls;
}

static void* make_attribute(int id) {
  Attribute* a = zeroed(sizeof *a);
  char text[16];
  a->value = id;
  MPI_Comm_dup(draw(2) ? base : MPI_COMM_SELF, &a->comm);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &a->key, NULL);
  MPI_Comm_set_attr(a->comm, a->key, &a->value);
  MPI_Comm_create_errhandler(on_error, &a->handler);
  MPI_Comm_set_errhandler(a->comm, a->handler);
  MPI_Info_create(&a->info);
  snprintf(text, sizeof text, "%d", id);
  MPI_Info_set(a->info, "id", text);
  return a;
}

static void use_attribute(void* data, int id, int s) {
  (void)s;
  Attribute* a = data;
  int* value = NULL;
  int flag = 0, flag_of_info = 0;
  char text[16] = "";
  MPI_Comm_get_attr(a->comm, a->key, &value, &flag);
  CHECK(flag && value == &a->value && *value == id);
  const int before = calls;
  CHECK(MPI_Send(NULL, 0, MPI_INT, size + 3, 0, a->comm) != MPI_SUCCESS && calls == before + 1);
  MPI_Info_get(a->info, "id", 15, text, &flag_of_info);
  CHECK(flag_of_info && atoi(text) == id);
}

static void end_attribute(void* data, int id) {
  (void)id;
  Attribute* a = data;
  MPI_Comm_free(&a->comm);
  MPI_Comm_free_keyval(&a->key);
  MPI_Errhandler_free(&a->handler);
  MPI_Info_free(&a->info);
  free(a);
}

const Kind attribute_kind = {"attribute", make_attribute, use_attribute, end_attribute};
