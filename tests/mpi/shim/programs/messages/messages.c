/* Receives that wait across an edge for messages of the next superstep, messages whose size the receiver learns by
 * probing, packed messages, cancelled receives, and requests that are posted before a superstep's edge and completed
 * after it by each call that can. */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);

  /* Posted a superstep ahead: two that differ only in their order, one with a datatype that is freed, a persistent
   * one, one from any source. */
  int ahead[5][2];
  MPI_Request waiting[5];
  MPI_Recv_init(ahead[3], 1, MPI_INT, left, 62, comm, &waiting[3]);

  for (int s = 0; going_on(s, n); ++s) {
    MPI_Status status;
    MPI_Request requests[6];
    if (s > 0) {
      int first[2] = {s, rank}, second[2] = {s, -rank};
      MPI_Send(first, 2, MPI_INT, right, 60, comm);
      MPI_Send(second, 2, MPI_INT, right, 60, comm);
      MPI_Send(first, 2, MPI_INT, right, 61, comm);
      MPI_Send(first, 1, MPI_INT, right, 62, comm);
      MPI_Send(first, 2, MPI_INT, right, 63, comm);
      MPI_Status all[5];
      MPI_Waitall(5, waiting, all);
      CHECK(ahead[0][0] == s && ahead[0][1] == left && ahead[1][0] == s && ahead[1][1] == -left);
      CHECK(ahead[2][1] == left && ahead[3][0] == s && ahead[4][0] == s && all[4].MPI_SOURCE == left);
    }
    int count, flag, length = 1 + (rank * 5 + s) % 40, expected = 1 + (left * 5 + s) % 40;
    char text[64], got[64];
    memset(text, 'a' + (rank + s) % 26, sizeof text);

    /* Probe, then allocate what the message needs; matched probes too. */
    MPI_Isend(text, length, MPI_CHAR, right, 1, comm, &requests[0]);
    MPI_Isend(text, length, MPI_CHAR, right, 2, comm, &requests[1]);
    MPI_Isend(text, length, MPI_CHAR, right, 3, comm, &requests[2]);
    MPI_Probe(left, 1, comm, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == expected);
    MPI_Recv(got, count, MPI_CHAR, left, 1, comm, MPI_STATUS_IGNORE);
    CHECK(got[count - 1] == 'a' + (left + s) % 26);
    MPI_Message message;
    MPI_Mprobe(MPI_ANY_SOURCE, 2, comm, &message, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    CHECK(count == expected && status.MPI_SOURCE == left);
    MPI_Mrecv(got, count, MPI_CHAR, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && got[0] == 'a' + (left + s) % 26);
    do MPI_Improbe(left, MPI_ANY_TAG, comm, &flag, &message, &status);
    while (!flag);
    CHECK(status.MPI_TAG == 3);
    MPI_Imrecv(got, (int)sizeof got, MPI_CHAR, &message, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Mprobe(MPI_PROC_NULL, 0, comm, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(got, 1, MPI_CHAR, &message, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);

    /* Packed: an int, some doubles, every second of a few shorts; also in the external format. */
    char packed[512], external[512];
    int position = 0, size_of_pack = 0, head = s, head_in = -1;
    double numbers[3] = {rank, s, 0.5}, numbers_in[3];
    short shorts[6] = {1, 2, 3, 4, 5, (short)rank}, shorts_in[6] = {0};
    MPI_Datatype second;
    MPI_Type_vector(3, 1, 2, MPI_SHORT, &second);
    MPI_Type_commit(&second);
    MPI_Pack_size(1, second, comm, &size_of_pack);
    CHECK(size_of_pack >= (int)(3 * sizeof(short)));
    MPI_Pack(&head, 1, MPI_INT, packed, sizeof packed, &position, comm);
    MPI_Pack(numbers, 3, MPI_DOUBLE, packed, sizeof packed, &position, comm);
    MPI_Pack(&shorts[1], 1, second, packed, sizeof packed, &position, comm);
    MPI_Sendrecv_replace(packed, sizeof packed, MPI_PACKED, right, 4, left, 4, comm, &status);
    position = 0;
    MPI_Unpack(packed, sizeof packed, &position, &head_in, 1, MPI_INT, comm);
    MPI_Unpack(packed, sizeof packed, &position, numbers_in, 3, MPI_DOUBLE, comm);
    MPI_Unpack(packed, sizeof packed, &position, &shorts_in[1], 1, second, comm);
    CHECK(head_in == s && numbers_in[0] == left && numbers_in[2] == 0.5 && shorts_in[1] == 2 &&
          shorts_in[5] == (short)left && shorts_in[2] == 0);
    MPI_Aint at = 0, bytes = 0;
    MPI_Pack_external_size("external32", 3, MPI_DOUBLE, &bytes);
    MPI_Pack_external("external32", numbers, 3, MPI_DOUBLE, external, sizeof external, &at);
    CHECK(bytes == 24 && at == 24);
    at = 0;
    MPI_Unpack_external("external32", external, sizeof external, &at, numbers_in, 3, MPI_DOUBLE);
    CHECK(numbers_in[0] == rank && numbers_in[1] == s);
    MPI_Type_free(&second);

    /* Cancelled: a receive without a message, and one whose message has already arrived. */
    int never = -1, there = -1;
    MPI_Irecv(&never, 1, MPI_INT, left, 90, comm, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && never == -1);
    MPI_Irecv(&there, 1, MPI_INT, left, 91, comm, &requests[0]);
    MPI_Send(&s, 1, MPI_INT, right, 91, comm);
    do MPI_Request_get_status(requests[0], &flag, &status);
    while (!flag);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(!flag && there == s);

    MPI_Datatype both;
    MPI_Type_contiguous(2, MPI_INT, &both);
    MPI_Type_commit(&both);
    MPI_Irecv(ahead[0], 2, MPI_INT, left, 60, comm, &waiting[0]);
    MPI_Start(&waiting[3]);
    MPI_Irecv(ahead[1], 2, MPI_INT, left, 60, comm, &waiting[1]);
    MPI_Irecv(ahead[2], 1, both, left, 61, comm, &waiting[2]);
    MPI_Type_free(&both);
    MPI_Irecv(ahead[4], 2, MPI_INT, MPI_ANY_SOURCE, 63, comm, &waiting[4]);

    int in[3] = {-1, -1, -1}, out = rank + 10 * s, done = 0, index, indices[6], some;
    MPI_Status statuses[6];
    for (int i = 0; i < 3; ++i) MPI_Irecv(&in[i], 1, MPI_INT, left, 10 + i, comm, &requests[i]);
    for (int i = 0; i < 3; ++i) MPI_Isend(&out, 1, MPI_INT, right, 10 + i, comm, &requests[3 + i]);
    edge();
    switch (s % 6) {
      case 0:
        MPI_Waitall(6, requests, statuses);
        CHECK(statuses[2].MPI_TAG == 12 && statuses[0].MPI_SOURCE == left);
        break;
      case 1:
        do MPI_Testall(6, requests, &flag, MPI_STATUSES_IGNORE);
        while (!flag);
        break;
      case 2:
        for (; done < 6; ++done) {
          MPI_Waitany(6, requests, &index, &status);
          CHECK(index >= 0 && index < 6 && requests[index] == MPI_REQUEST_NULL);
          if (index < 3) CHECK(status.MPI_TAG == 10 + index);
        }
        MPI_Waitany(6, requests, &index, &status);
        CHECK(index == MPI_UNDEFINED);
        break;
      case 3:
        while (done < 6) {
          MPI_Waitsome(6, requests, &some, indices, statuses);
          for (int i = 0; i < some; ++i)
            if (indices[i] < 3) CHECK(statuses[i].MPI_TAG == 10 + indices[i]);
          done += some;
        }
        break;
      case 4:
        while (done < 6) {
          MPI_Testany(6, requests, &index, &flag, &status);
          if (flag) ++done;
        }
        break;
      default:
        for (int i = 0; i < 6; ++i) {
          do MPI_Request_get_status(requests[i], &flag, &status);
          while (!flag);
          if (i < 3) CHECK(status.MPI_TAG == 10 + i);
          MPI_Wait(&requests[i], &status);
          MPI_Get_count(&status, MPI_INT, &count);
          if (i < 3) CHECK(count == 1 && status.MPI_SOURCE == left);
        }
    }
    for (int i = 0; i < 3; ++i) CHECK(in[i] == left + 10 * s && requests[i] == MPI_REQUEST_NULL);
  }
  for (int i = 0; i < 5; ++i) {
    MPI_Cancel(&waiting[i]);
    MPI_Wait(&waiting[i], MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&waiting[3]);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("ok messages\n");
  return 0;
}
