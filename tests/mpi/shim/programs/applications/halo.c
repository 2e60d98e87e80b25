/* Heat on a ring of blocks, with halos by persistent requests that live through all epochs: point-to-point in all
 * modes, partitioned, and collective. Checked against the same rod computed by one rank. */
#include <math.h>

#include "check.h"

enum { kRows = 3, kWidth = 24, kParts = 4 }; /* each rank holds kRows columns of kWidth cells */

static double next(double left, double here, double right) { return here + 0.25 * (left - 2 * here + right); }

/* The whole ring, by one rank. */
static void step_alone(double* field, double* scratch, int columns) {
  memcpy(scratch, field, sizeof(double) * (size_t)columns * kWidth);
  for (int c = 0; c < columns; ++c)
    for (int i = 0; i < kWidth; ++i)
      field[c * kWidth + i] = next(scratch[(c + columns - 1) % columns * kWidth + i], scratch[c * kWidth + i],
                                   scratch[(c + 1) % columns * kWidth + i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv), period = 1;
  MPI_Comm ring;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &period, 0, &ring);
  MPI_Comm_rank(ring, &rank);
  int left, right;
  MPI_Cart_shift(ring, 0, 1, &left, &right);

  const int columns = size * kRows;
  double* all = malloc(sizeof(double) * (size_t)columns * kWidth);
  double* scratch = malloc(sizeof(double) * (size_t)columns * kWidth);
  double mine[kRows + 2][kWidth], old[kRows + 2][kWidth];
  for (int c = 0; c < columns; ++c)
    for (int i = 0; i < kWidth; ++i) all[c * kWidth + i] = c * 7 % 5 + i * 3 % 11;
  memcpy(mine[1], all + rank * kRows * kWidth, sizeof(double) * kRows * kWidth);

  /* The column is sent in two interleaved halves, with a datatype that is freed before the first use. */
  MPI_Datatype half;
  MPI_Type_vector(kWidth / 2, 1, 2, MPI_DOUBLE, &half);
  MPI_Type_commit(&half);
  char* buffer = malloc(1 << 16);
  MPI_Buffer_attach(buffer, 1 << 16);
  MPI_Request halo[8];
  MPI_Recv_init(&mine[0][0], 1, half, left, 1, ring, &halo[0]);
  MPI_Recv_init(&mine[0][1], 1, half, left, 2, ring, &halo[1]);
  MPI_Recv_init(&mine[kRows + 1][0], 1, half, right, 3, ring, &halo[2]);
  MPI_Recv_init(&mine[kRows + 1][1], 1, half, MPI_ANY_SOURCE, 4, ring, &halo[3]);
  MPI_Send_init(&mine[kRows][0], 1, half, right, 1, ring, &halo[4]);
  MPI_Ssend_init(&mine[kRows][1], 1, half, right, 2, ring, &halo[5]);
  MPI_Bsend_init(&mine[1][0], 1, half, left, 3, ring, &halo[6]);
  MPI_Send_init(&mine[1][1], 1, half, left, 4, ring, &halo[7]);
  MPI_Type_free(&half);
  CHECK(half == MPI_DATATYPE_NULL);

  /* Collectives, and a partitioned message that the two sides divide differently. */
  double heat = 0, sum = 0, parts_out[kParts * 3], parts_in[kParts * 3];
  int root_says = -1;
  MPI_Request total, word, parts[2];
  MPI_Allreduce_init(&heat, &sum, 1, MPI_DOUBLE, MPI_SUM, ring, MPI_INFO_NULL, &total);
  MPI_Bcast_init(&root_says, 1, MPI_INT, 0, ring, MPI_INFO_NULL, &word);
  MPI_Psend_init(parts_out, kParts, 3, MPI_DOUBLE, right, 1, ring, MPI_INFO_NULL, &parts[0]);
  MPI_Precv_init(parts_in, 3, kParts, MPI_DOUBLE, left, 1, ring, MPI_INFO_NULL, &parts[1]);

  for (int s = 0; going_on(s, n); ++s) {
    MPI_Startall(8, halo);
    int done = 0, index, indices[8], some, flag;
    MPI_Status status, statuses[8];
    while (done < 8) { /* all four ways, repeatedly */
      switch (s % 4) {
        case 0:
          MPI_Waitany(8, halo, &index, &status);
          CHECK(index >= 0 && index < 8);
          if (index == 3) CHECK(status.MPI_SOURCE == right && status.MPI_TAG == 4);
          ++done;
          break;
        case 1:
          MPI_Waitsome(8, halo, &some, indices, statuses);
          CHECK(some > 0);
          done += some;
          break;
        case 2:
          MPI_Testsome(8, halo, &some, indices, MPI_STATUSES_IGNORE);
          CHECK(some >= 0);
          done += some;
          break;
        default:
          MPI_Testall(8, halo, &flag, MPI_STATUSES_IGNORE);
          if (flag) done = 8;
      }
    }
    MPI_Testany(8, halo, &index, &flag, &status); /* no request is active any more */
    CHECK(flag && index == MPI_UNDEFINED && halo[0] != MPI_REQUEST_NULL);

    memcpy(old, mine, sizeof old);
    for (int c = 1; c <= kRows; ++c)
      for (int i = 0; i < kWidth; ++i) mine[c][i] = next(old[c - 1][i], old[c][i], old[c + 1][i]);
    step_alone(all, scratch, columns);
    CHECK(!memcmp(mine[1], all + rank * kRows * kWidth, sizeof(double) * kRows * kWidth));

    heat = 0;
    for (int c = 1; c <= kRows; ++c)
      for (int i = 0; i < kWidth; ++i) heat += mine[c][i];
    if (rank == 0) root_says = s;
    MPI_Start(&total);
    MPI_Start(&word);
    double expected = 0;
    for (int c = 0; c < columns * kWidth; ++c) expected += all[c];
    MPI_Wait(&word, MPI_STATUS_IGNORE);
    MPI_Wait(&total, MPI_STATUS_IGNORE);
    CHECK(root_says == s && fabs(sum - expected) < 1e-9 * expected);

    MPI_Start(&parts[1]);
    MPI_Start(&parts[0]);
    for (int p = 0; p < kParts; ++p) {
      for (int i = 0; i < 3; ++i) parts_out[3 * p + i] = rank + s + 0.01 * (3 * p + i);
      MPI_Test(&parts[0], &flag, MPI_STATUS_IGNORE);
      CHECK(!flag); /* a partition is missing */
      if (p == 1) MPI_Pready_range(0, 1, parts[0]);
      if (p == 2) MPI_Pready(2, parts[0]);
      if (p == 3) MPI_Pready_list(1, &p, parts[0]);
    }
    do MPI_Parrived(parts[1], 2, &flag);
    while (!flag);
    MPI_Waitall(2, parts, statuses);
    CHECK(statuses[1].MPI_SOURCE == left && statuses[1].MPI_TAG == 1);
    for (int i = 0; i < kParts * 3; ++i) CHECK(parts_in[i] == left + s + 0.01 * i);

    /* Both directions in one call. */
    int out = rank * 10 + s, in = -1;
    MPI_Request both;
    MPI_Isendrecv(&out, 1, MPI_INT, right, 8, &in, 1, MPI_INT, left, 8, ring, &both);
    MPI_Wait(&both, &status);
    CHECK(in == left * 10 + s);
    MPI_Isendrecv_replace(&out, 1, MPI_INT, left, 9, right, 9, ring, &both);
    MPI_Wait(&both, MPI_STATUS_IGNORE);
    CHECK(out == right * 10 + s);
    if (s % 3 == 0) { /* started before an edge, waited for after it */
      MPI_Start(&word);
      edge();
      MPI_Wait(&word, MPI_STATUS_IGNORE);
    }
    edge();
  }
  for (int i = 0; i < 8; ++i) MPI_Request_free(&halo[i]);
  MPI_Request_free(&total);
  MPI_Request_free(&word);
  MPI_Request_free(&parts[0]);
  MPI_Request_free(&parts[1]);
  void* back;
  int back_size;
  MPI_Buffer_detach(&back, &back_size);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  printf("ok halo\n");
  return 0;
}
