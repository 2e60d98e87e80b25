// The two MPI jobs that are compared: the same program, sidecars, PMIx servers and Open MPI settings, once with
// libbspmpi.so preloaded and once without. All ranks are on this machine, over tcp on loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::bench {

class MpiJob {
 public:
  // `arguments` may hold %R, which stands for a path of the rank's own.
  MpiJob(bool shim, std::uint32_t ranks, const std::string& program, const std::vector<std::string>& arguments);

  [[nodiscard]] std::string own_path(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(programs.size()); }
  // SIGSTOP to all, and waits until they are; SIGCONT to all.
  void stop();
  void go_on();
  [[nodiscard]] std::string errors() const;  // what the programs wrote to stderr

  test::Cluster cluster;
  std::vector<test::Process> programs;

 private:
  std::vector<std::unique_ptr<test::FakeInit>> inits_;
};

}  // namespace bsp::bench
