/* Groups, communicators, attributes, topologies, error handlers, infos, sessions. */
#include "fixtures.h"

static int keyval, value = 7, *got;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void attributes_by_mpi1_names(MPI_Comm made) {
  MPI_Keyval_create(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Attr_put(made, keyval, &value);
  MPI_Attr_get(made, keyval, &got, &flag);
  CHECK(flag && got == &value);
  MPI_Attr_delete(made, keyval);
  MPI_Keyval_free(&keyval);
}
#pragma GCC diagnostic pop
static int errors_seen = 0;
static void on_comm_error(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code, ++errors_seen; }
static void on_session_error(MPI_Session* session, int* code, ...) { (void)session, (void)code, ++errors_seen; }

static void groups(void) {
  MPI_Group all, one, two, made;
  int range[1][3] = {{0, 0, 1}}, first = 0;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_size(all, &number);
  MPI_Group_rank(all, &other_number);
  CHECK(number == size && other_number == rank);
  MPI_Group_incl(all, 1, &first, &one);
  MPI_Group_excl(all, 1, &first, &two);
  MPI_Group_union(one, two, &made);
  MPI_Group_compare(made, all, &number);
  CHECK(number == MPI_IDENT);
  MPI_Group_free(&made);
  MPI_Group_intersection(all, one, &made);
  MPI_Group_translate_ranks(made, 1, &first, all, &number);
  CHECK(number == 0);
  MPI_Group_free(&made);
  MPI_Group_difference(all, one, &made);
  MPI_Group_free(&made);
  MPI_Group_range_incl(all, 1, range, &made);
  MPI_Group_free(&made);
  MPI_Group_range_excl(all, 1, range, &made);
  CHECK(MPI_Group_f2c(MPI_Group_c2f(made)) == made);
  MPI_Group_free(&made);
  MPI_Group_free(&one);
  MPI_Group_free(&two);
  MPI_Group_free(&all);
}

static void made_of_groups(void) {
  MPI_Group all, side, across;
  MPI_Comm made, mine, inter, merged;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_create(MPI_COMM_WORLD, all, &made);
  MPI_Comm_compare(made, MPI_COMM_WORLD, &number);
  CHECK(number == MPI_CONGRUENT);
  MPI_Comm_disconnect(&made);
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 3, &made);
  MPI_Comm_free(&made);
  MPI_Comm_create_from_group(all, "every", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
  MPI_Barrier(made);
  MPI_Comm_free(&made);
  const int upper = rank >= size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, upper, 0, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 4, &inter);
  MPI_Comm_test_inter(inter, &flag);
  MPI_Comm_remote_size(inter, &number);
  MPI_Comm_remote_group(inter, &across);
  MPI_Comm_group(inter, &side);
  CHECK(flag && number == (upper ? size / 2 : size - size / 2));
  MPI_Intercomm_merge(inter, upper, &merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Intercomm_create_from_groups(side, 0, across, 0, "sides", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
  MPI_Barrier(inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&mine);
  MPI_Group_free(&side);
  MPI_Group_free(&across);
  MPI_Group_free(&all);
}

static void communicators(void) {
  MPI_Comm made;
  MPI_Info hints;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_name(made, "every");
  MPI_Comm_get_name(made, text, &number);
  CHECK(strcmp(text, "every") == 0 && number == 5);
  MPI_Info_create(&hints);
  MPI_Comm_set_info(made, hints);
  MPI_Info_free(&hints);
  MPI_Comm_get_info(made, &hints);
  MPI_Info_free(&hints);
  MPI_Comm_rank(made, &number);
  MPI_Comm_size(made, &other_number);
  CHECK(number == rank && other_number == size);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(made)) == made);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(made, keyval, &value);
  MPI_Comm_get_attr(made, keyval, &got, &flag);
  CHECK(flag && got == &value);
  MPI_Comm_delete_attr(made, keyval);
  MPI_Comm_free_keyval(&keyval);
  attributes_by_mpi1_names(made);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_comm_error, &handler);
  CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(handler)) == handler);
  MPI_Comm_set_errhandler(made, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_get_errhandler(made, &handler);
  errors_seen = 0;
  MPI_Comm_call_errhandler(made, MPI_ERR_OTHER);
  CHECK(errors_seen == 1);
  errors_seen = 0;
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&made);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
  MPI_Comm_free(&made);
  MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
  finish(&request, 0);
  MPI_Comm_free(&made);
  MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made, &request);
  finish(&request, 0);
  MPI_Comm_free(&made);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  MPI_Comm_free(&made);
  MPI_Comm_get_parent(&made);
  CHECK(made == MPI_COMM_NULL);
}

static void topologies(void) {
  MPI_Comm made, sub;
  int dims[1] = {0}, periods[1] = {1}, at[1], index[kMost], edges[kMost], next = (rank + 1) % size, before, weight = 1;
  MPI_Dims_create(size, 1, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &made);
  MPI_Topo_test(made, &number);
  CHECK(number == MPI_CART);
  MPI_Cartdim_get(made, &number);
  MPI_Cart_get(made, 1, dims, periods, at);
  MPI_Cart_rank(made, at, &number);
  CHECK(number == rank);
  MPI_Cart_coords(made, rank, 1, at);
  MPI_Cart_shift(made, 0, 1, &before, &number);
  CHECK(number == next);
  MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &number);
  MPI_Cart_sub(made, periods, &sub);
  MPI_Comm_free(&sub);
  MPI_Comm_free(&made);
  for (int r = 0; r < size; ++r) index[r] = r + 1, edges[r] = size - 1 - r;
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 1, &made);
  MPI_Graphdims_get(made, &number, &other_number);
  CHECK(number == size && other_number == size);
  MPI_Graph_get(made, size, size, some_ints, taken);
  MPI_Graph_neighbors_count(made, rank, &number);
  MPI_Graph_neighbors(made, rank, 1, &other_number);
  CHECK(number == 1 && other_number == size - 1 - rank);
  MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &number);
  MPI_Comm_free(&made);
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, ones, &next, &weight, MPI_INFO_NULL, 1, &made);
  MPI_Dist_graph_neighbors_count(made, &number, &other_number, &flag);
  CHECK(number == 1 && other_number == 1 && flag);
  MPI_Dist_graph_neighbors(made, 1, &number, &weight, 1, &other_number, &weight);
  CHECK(number == (rank + size - 1) % size && other_number == next);
  MPI_Comm_free(&made);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight, 1, &next, &weight, MPI_INFO_NULL, 1, &made);
  MPI_Comm_free(&made);
}

static void infos(void) {
  MPI_Info info, copy;
  int length = sizeof text;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get(info, "key", sizeof text - 1, text, &flag);
  CHECK(flag && strcmp(text, "value") == 0);
  MPI_Info_get_string(info, "key", &length, text, &flag);
  CHECK(flag && length == 6);
  MPI_Info_get_valuelen(info, "key", &number, &flag);
  MPI_Info_get_nkeys(info, &number);
  CHECK(number == 1);
  MPI_Info_get_nthkey(info, 0, text);
  MPI_Info_dup(info, &copy);
  CHECK(MPI_Info_f2c(MPI_Info_c2f(copy)) == copy);
  MPI_Info_delete(copy, "key");
  MPI_Info_free(&copy);
  MPI_Info_free(&info);
  char* arguments[] = {NULL};
  MPI_Info_create_env(0, arguments, &info);
  MPI_Info_free(&info);
}

static void sessions(void) {
  MPI_Session session;
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group all;
  int length = sizeof text;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_create_errhandler(on_session_error, &handler);
  MPI_Session_set_errhandler(session, handler);
  MPI_Errhandler_free(&handler);
  MPI_Session_get_errhandler(session, &handler);
  MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
  CHECK(errors_seen == 1);
  errors_seen = 0;
  MPI_Errhandler_free(&handler);
  MPI_Session_get_info(session, &info);
  MPI_Info_free(&info);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number);
  CHECK(number >= 2);
  MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, text);
  MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Group_size(all, &number);
  CHECK(number == size);
  MPI_Group_free(&all);
  CHECK(MPI_Session_f2c(MPI_Session_c2f(session)) == session);
  MPI_Session_finalize(&session);
}
