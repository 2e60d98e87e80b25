// A C++ program: particles move between the ranks' domains, in std::vectors, over a communicator owned by an object;
// probing yields the number that moves. Their sum and their identities are checked.
#include "check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Particle {
  double place, speed;
  int id;
};

void expect(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

class Communicator {
 public:
  explicit Communicator(MPI_Comm of) { MPI_Comm_dup(of, &comm_); }
  ~Communicator() { MPI_Comm_free(&comm_); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  operator MPI_Comm() const { return comm_; }
  int rank() const {
    int r = -1;
    MPI_Comm_rank(comm_, &r);
    return r;
  }
  int size() const {
    int s = 0;
    MPI_Comm_size(comm_, &s);
    return s;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class ParticleType {
 public:
  ParticleType() {
    const std::array<int, 3> lengths{1, 1, 1};
    const std::array<MPI_Aint, 3> places{offsetof(Particle, place), offsetof(Particle, speed), offsetof(Particle, id)};
    const std::array<MPI_Datatype, 3> types{MPI_DOUBLE, MPI_DOUBLE, MPI_INT};
    MPI_Datatype packed;
    MPI_Type_create_struct(3, lengths.data(), places.data(), types.data(), &packed);
    MPI_Type_create_resized(packed, 0, sizeof(Particle), &type_);
    MPI_Type_free(&packed);
    MPI_Type_commit(&type_);
  }
  ~ParticleType() { MPI_Type_free(&type_); }
  ParticleType(const ParticleType&) = delete;
  ParticleType& operator=(const ParticleType&) = delete;
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

std::vector<Particle> receive(const Communicator& comm, const ParticleType& type, int from) {
  MPI_Status status;
  int count = 0;
  MPI_Probe(from, 1, comm, &status);
  MPI_Get_count(&status, type, &count);
  std::vector<Particle> came(static_cast<std::size_t>(count));
  MPI_Recv(came.data(), count, type, from, 1, comm, MPI_STATUS_IGNORE);
  return came;
}

void run(int n) {
  Communicator comm(MPI_COMM_WORLD);
  ParticleType type;
  const int rank = comm.rank(), size = comm.size(), each = 300;
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  std::mt19937 random(static_cast<unsigned>(rank));
  std::uniform_real_distribution<double> anywhere(rank, rank + 1), speed(-0.3, 0.3);
  std::vector<Particle> mine;
  for (int i = 0; i < each; ++i) mine.push_back({anywhere(random), speed(random), rank * each + i});
  for (int s = 0; going_on(s, n); ++s) {
    std::vector<Particle> stay, to_left, to_right;
    for (Particle p : mine) {
      p.place += p.speed;
      auto& list = p.place < rank ? to_left : p.place >= rank + 1 ? to_right : stay;
      if (p.place < 0) p.place += size;
      if (p.place >= size) p.place -= size;
      list.push_back(p);
    }
    std::array<MPI_Request, 2> requests;
    MPI_Isend(to_left.data(), static_cast<int>(to_left.size()), type, left, 1, comm, &requests[0]);
    auto send_right = [&] {
      MPI_Isend(to_right.data(), static_cast<int>(to_right.size()), type, right, 1, comm, &requests[1]);
    };
    send_right();
    for (int from : {right, left})
      for (const Particle& p : receive(comm, type, from)) stay.push_back(p);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    mine = std::move(stay);
    std::array<long, 2> here{static_cast<long>(mine.size()), 0}, everywhere{};
    for (const Particle& p : mine) {
      here[1] += p.id;
      expect(p.place >= rank && p.place < rank + 1, "a particle in a foreign domain");
    }
    MPI_Allreduce(here.data(), everywhere.data(), 2, MPI_LONG, MPI_SUM, comm);
    const long all = long{each} * size;
    expect(everywhere[0] == all && everywhere[1] == all * (all - 1) / 2, "particles were lost");
    usleep(1000);
    MPI_Barrier(comm);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  MPI_Init(&argc, &argv);
  run(argc > 1 ? std::stoi(argv[1]) : 1000);
  MPI_Finalize();
  std::cout << "ok particles" << std::endl;
  return 0;
} catch (const std::exception& e) {
  std::cout << "wrong " << e.what() << std::endl;
  _exit(3);
}
