#include "tests/bench/mpi_job.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace bsp::bench {
namespace {

// What the shim reads from the epoch descriptor; without a shim it must be set before MPI_Init.
std::vector<std::string> pmix_variables(const std::string& descriptor) {
  std::vector<std::string> variables;
  std::ifstream file(descriptor);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("PMIX_")) variables.push_back(line);
  if (variables.empty()) throw std::runtime_error(descriptor + " names no PMIx server");
  return variables;
}

}  // namespace

MpiJob::MpiJob(bool shim, std::uint32_t ranks, const std::string& program, const std::vector<std::string>& arguments)
    : cluster(ranks) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    cluster.start_sidecar(r);
    inits_.push_back(std::make_unique<test::FakeInit>(cluster.run_dir(r), control::ProgramState::kRunning));
  }
  cluster.prepare(0);
  cluster.open(0);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    ::mkfifo(own_path(r).c_str(), 0600);
    std::vector<std::string> command{BSP_BINARY_DIR "/bin/" + program};
    for (const std::string& a : arguments) command.push_back(a == "%R" ? own_path(r) : a);
    // The shim's own defaults (sidecar/shim/epoch/epoch.cc), so that both run the same Open MPI.
    std::vector<std::string> environment{"OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo",
                                         "OMPI_MCA_pml=ob1",      "OMPI_MCA_osc=^ucx",
                                         "PMIX_MCA_gds=hash",     "PMIX_MCA_pcompress_base_silence_warning=1"};
    if (shim) {
      environment.push_back("LD_PRELOAD=" BSP_BINARY_DIR "/bin/libbspmpi.so");
      environment.push_back("BSP_RUN_DIR=" + cluster.run_dir(r));
    } else {
      std::vector<std::string> pmix = pmix_variables(cluster.run_dir(r) + "/epoch");
      environment.insert(environment.end(), pmix.begin(), pmix.end());
    }
    programs.emplace_back(std::move(command), std::move(environment), cluster.run_dir(r) + ".program.log");
  }
}

std::string MpiJob::own_path(std::uint32_t rank) const { return cluster.run_dir(rank) + ".fifo"; }

void MpiJob::stop() {
  for (test::Process& p : programs) p.signal(SIGSTOP);
  for (test::Process& p : programs) {
    int status = 0;
    if (::waitpid(p.pid(), &status, WUNTRACED) != p.pid() || !WIFSTOPPED(status))
      throw std::runtime_error("a program ended early:\n" + errors());
  }
}

void MpiJob::go_on() {
  for (test::Process& p : programs) p.signal(SIGCONT);
}

std::string MpiJob::errors() const {
  std::string all;
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    std::ifstream file(cluster.run_dir(r) + ".program.log");
    all.append(std::istreambuf_iterator<char>(file), {});
    all += cluster.log(r);
  }
  return all;
}

}  // namespace bsp::bench
