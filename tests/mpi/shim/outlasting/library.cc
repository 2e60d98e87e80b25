// A library that ends MPI in a destructor, after the program's last superstep, and makes and frees objects before.
#include <cstdio>
#include <vector>

#include "../programs/check.h"

namespace {

class Solver {
 public:
  ~Solver() {
    int rank = -1, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int s = 0; going_on(s, 1000000); ++s) step(rank, size, s);
    for (MPI_Comm& team : teams_) MPI_Comm_free(&team);
    MPI_Finalize();
    std::printf("ok outlasting\n");
    std::fflush(stdout);
  }

 private:
  void step(int rank, int size, int s) {
    MPI_Comm team;
    MPI_Datatype pair;
    MPI_Group group;
    MPI_Info info;
    MPI_Comm_split(MPI_COMM_WORLD, 0, s % 2 != 0 ? rank : -rank, &team);
    MPI_Comm_group(team, &group);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Info_create(&info);
    int mine[2] = {rank, s}, got[2] = {-1, -1}, sum = -1;
    MPI_Sendrecv(mine, 1, pair, (rank + 1) % size, 1, got, 1, pair, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, team);
    CHECK(got[0] == (rank + size - 1) % size && got[1] == s && sum == size * (size - 1) / 2);
    MPI_Info_free(&info);
    MPI_Type_free(&pair);
    MPI_Group_free(&group);
    teams_.push_back(team);
    if (teams_.size() > 4) MPI_Comm_free(&teams_.front()), teams_.erase(teams_.begin());
    edge();
  }

  std::vector<MPI_Comm> teams_;
};

Solver solver;

}  // namespace

extern "C" void use_solver() {}
