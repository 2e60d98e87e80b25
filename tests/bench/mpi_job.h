// The two MPI jobs to compare: the same program, sidecars, PMIx servers and Open MPI settings, once with libbspmpi.so
// preloaded and once without. All ranks are on this machine, over tcp on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::bench {

class MpiJob {
 public:
  // `arguments` may contain %R, which is replaced by a path for each rank.
  MpiJob(bool shim, std::uint32_t ranks, const std::string& program, const std::vector<std::string>& arguments);

  [[nodiscard]] std::string own_path(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(programs.size()); }
  // Sends SIGSTOP to all and waits until they have stopped; sends SIGCONT to all.
  void stop();
  void go_on();
  [[nodiscard]] std::string errors() const;  // the programs' stderr

  test::Cluster cluster;
  std::vector<test::Process> programs;

 private:
  std::vector<std::unique_ptr<test::FakeInit>> inits_;
};

}  // namespace bsp::bench
