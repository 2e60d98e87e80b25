// A C++ program: iostreams, exceptions, its own threads, static objects, MPI_THREAD_SERIALIZED.
#include "check.h"

#include <condition_variable>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct World {
  World() = default;
  int rank = -1, size = 0;
  std::map<int, std::vector<double>> fields;
} world;

// Adds in a separate thread that lives through all epochs.
class Adder {
 public:
  Adder() : thread_([this] { run(); }) {}
  ~Adder() {
    {
      std::lock_guard guard(lock_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  double add(const std::vector<double>& values) {
    std::unique_lock guard(lock_);
    work_ = &values;
    changed_.notify_all();
    changed_.wait(guard, [this] { return work_ == nullptr; });
    return sum_;
  }

 private:
  void run() {
    std::unique_lock guard(lock_);
    while (true) {
      changed_.wait(guard, [this] { return stop_ || work_ != nullptr; });
      if (stop_) return;
      sum_ = 0;
      for (double v : *work_) sum_ += v;
      work_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex lock_;
  std::condition_variable changed_;
  const std::vector<double>* work_ = nullptr;
  double sum_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

}  // namespace

int main(int argc, char** argv) try {
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  expect(provided >= MPI_THREAD_SERIALIZED, "thread level");
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  const int n = argc > 1 ? std::stoi(argv[1]) : 1000;
  Adder adder;
  double before = MPI_Wtime();
  for (int s = 0; going_on(s, n); ++s) {
    auto& field = world.fields[s % 7];
    field.assign(100, world.rank + s);
    double mine = adder.add(field), sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == 100.0 * (world.size * (world.size - 1) / 2 + world.size * s), "sum");
    try {
      if (s % 10 == 0) throw std::out_of_range("every tenth");
    } catch (const std::out_of_range&) {
    }
    usleep(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    const double now = MPI_Wtime();
    expect(now >= before, "time goes backwards");
    before = now;
  }
  MPI_Finalize();
  std::cout << "ok cxx" << std::endl;
  return 0;
} catch (const std::exception& e) {
  std::cout << "wrong " << e.what() << std::endl;
  _exit(3);
}
