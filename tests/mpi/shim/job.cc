#include "tests/mpi/shim/job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace bsp::test {

using namespace std::chrono_literals;

namespace {

constexpr auto kLimit = 200s;  // for operations that take milliseconds on success, shim_exhausted's 15 s

template <class Done>
bool until(Done done) {
  for (auto deadline = std::chrono::steady_clock::now() + kLimit; !done(); ::poll(nullptr, 0, 1))
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

}  // namespace

Job::Job(Options options)
    : cluster(options.ranks, options.seats),
      options_(std::move(options)),
      stopped_(options_.ranks),
      exited_(options_.ranks, -1) {
  for (std::uint32_t pod = 0; pod < cluster.pods(); ++pod) cluster.start_sidecar(pod);
  if (options_.paced) {
    std::ofstream(pace()) << std::string(sizeof allowed_, '\0');
    options_.preload = BSP_BINARY_DIR "/bin/libshim_pace.so:" + options_.preload;
    options_.environment.push_back("BSP_TEST_PACE=" + pace());
  }
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    std::vector<std::string> command = options_.wrapper;
    command.push_back(BSP_BINARY_DIR "/bin/" + options_.program);
    command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
    std::vector<std::string> environment{"LD_PRELOAD=" + options_.preload, "BSP_RUN_DIR=" + cluster.home(r),
                                         "OMPI_MCA_btl_tcp_if_include=lo",
                                         "OMPI_MCA_mpi_yield_when_idle=1"};  // more ranks than cores
    // Another Open MPI than the one that the programs were linked with (tests/mpi/versions.sh).
    if (const char* prefix = std::getenv("BSP_OPEN_MPI")) {
      environment.push_back(std::format("LD_LIBRARY_PATH={}/lib", prefix));
      environment.push_back(std::format("OPAL_PREFIX={}", prefix));
    }
    environment.insert(environment.end(), options_.environment.begin(), options_.environment.end());
    programs.emplace_back(std::move(command), std::move(environment), cluster.home(r) + ".program.log");
    inits_.push_back(std::make_unique<FakeInit>(cluster.run_dir(r), control::ProgramState::kRunning));
  }
  std::this_thread::sleep_for(options_.first_epoch_after);
  open(0);
}

Job::~Job() = default;

void Job::open(std::uint64_t epoch) {
  epoch_ = epoch;
  cluster.prepare(epoch);
  cluster.open(epoch);
}

Job::Gate Job::settle_gate() {
  Gate result = Gate::kEnded;
  EXPECT_TRUE(until([&] {
    if (all_stopped()) {
      result = Gate::kStopped;
      return true;
    }
    for (std::uint32_t r = 0; r < options_.ranks; ++r)
      if (status(r)["gate_superstep"] != 0) return false;
    result = Gate::kPostponed;
    return true;
  }));
  return result;
}

void Job::drop_gate(std::uint32_t voter) {
  cluster.call(voter, wire::kCancelGate);
  for (std::uint32_t r = 0; r < options_.ranks; ++r)
    EXPECT_TRUE(until([&] {
      allow(completed(r) + 1);
      auto now = status(r);
      return now["gate_superstep"] == 0 && now["gate_committed"] == false && now["blocked_reason"] == "";
    })) << status(r).dump();
}

void Job::kill_sidecar(std::uint32_t rank) {
  cluster.sidecars[cluster.pod_of(rank)].signal(SIGKILL);
  cluster.sidecars[cluster.pod_of(rank)].wait(10s);
}

void Job::start_sidecar(std::uint32_t rank) {
  cluster.start_sidecar(cluster.pod_of(rank));
  for (const std::uint32_t r : cluster.ranks_of(cluster.pod_of(rank)))
    inits_[r] = std::make_unique<FakeInit>(cluster.run_dir(r), control::ProgramState::kRunning);
}

nlohmann::json Job::status(std::uint32_t rank) { return cluster.call(rank, wire::kStatus).header; }

bool Job::all_stopped() {
  bool all = true;
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    if (!stopped_[r] && exited_[r] == -1) {
      int status = 0;
      if (::waitpid(programs[r].pid(), &status, WNOHANG | WUNTRACED) > 0) {
        if (WIFSTOPPED(status)) {
          stopped_[r] = true;
          inits_[r]->say(control::Stopped::kVerb, {{"pid", std::to_string(programs[r].pid())}});
        } else {
          exited_[r] = status;
        }
      }
    }
    all = all && stopped_[r];
  }
  return all;
}

void Job::allow(std::uint64_t supersteps) {
  if (!options_.paced || supersteps <= allowed_) return;
  allowed_ = supersteps;
  const Fd file(::open(pace().c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), &allowed_, sizeof allowed_, 0), ssize_t{sizeof allowed_});
}

bool Job::reach(std::uint64_t s) {
  allow(s);
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    bool there = until([&] {
      all_stopped();
      return exited_[r] != -1 || completed(r) >= s;
    });
    EXPECT_TRUE(there) << "rank " << r << " doesn't reach superstep " << s << "\n" << stderr_of(r);
    if (!there || exited_[r] != -1) return false;
  }
  return true;
}

Job::Gate Job::gate(std::uint32_t edges) { return commit() != 0 ? wait_for_gate(edges) : Gate::kEnded; }

std::uint64_t Job::commit(std::uint64_t ahead) {
  std::uint64_t target = 0;
  // Doubles the distance each time the gate was late.
  for (std::uint64_t late = 1; late; ahead *= 2) {
    for (std::uint32_t r = 0; r < options_.ranks; ++r) target = std::max(target, completed(r) + ahead);
    late = 0;
    for (std::uint32_t r = 0; r < options_.ranks; ++r)
      late += cluster.call(r, wire::kArmGate, {{"superstep", target}}).header["late"].get<bool>();
    if (late)
      for (std::uint32_t r = 0; r < options_.ranks; ++r) cluster.call(r, wire::kCancelGate);
    all_stopped();
    if (std::ranges::any_of(exited_, [](int e) { return e != -1; })) return 0;
  }
  for (std::uint32_t r = 0; r < options_.ranks; ++r) cluster.call(r, wire::kCommitGate, {{"superstep", target}});
  allow(target);
  return target;
}

Job::Gate Job::poll_gate(std::uint32_t edges) {
  if (all_stopped()) return Gate::kStopped;
  allow(completed() + 1);
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    if (exited_[r] != -1) return Gate::kEnded;
    if (status(r)["postponed"].get<std::uint32_t>() >= edges) return Gate::kPostponed;
  }
  return Gate::kOpen;
}

Job::Gate Job::wait_for_gate(std::uint32_t edges) {
  Gate result = Gate::kOpen;
  if (until([&] { return (result = poll_gate(edges)) != Gate::kOpen; })) return result;
  std::string state;
  for (std::uint32_t r = 0; r < options_.ranks; ++r) state += status(r).dump() + "\n" + stderr_of(r);
  ADD_FAILURE() << "the gate is not reached\n" << state;
  return Gate::kEnded;
}

void Job::prepare_move(const std::vector<std::uint32_t>& ranks, std::uint32_t pod) {
  for (const std::uint32_t rank : ranks) cluster.plan_move(rank, pod);
  cluster.prepare(epoch_ + 1);
}

void Job::next_epoch() {
  for (const std::uint32_t r : cluster.arrive())
    inits_[r] = std::make_unique<FakeInit>(cluster.run_dir(r), control::ProgramState::kRestored);
  open(epoch_ + 1);
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    inits_[r]->expect(control::Continue::kVerb);
    stopped_[r] = false;
    programs[r].signal(SIGCONT);
    inits_[r]->say(control::Running::kVerb, {{"pid", std::to_string(programs[r].pid())}});
  }
}

bool Job::turn() {
  Gate came = gate();
  if (came != Gate::kStopped) {
    EXPECT_NE(came, Gate::kPostponed) << reasons();
    return false;
  }
  next_epoch();
  return true;
}

std::string Job::reasons() {
  std::string all;
  for (std::uint32_t r = 0; r < options_.ranks; ++r)
    if (auto reason = status(r)["blocked_reason"].get<std::string>(); !reason.empty())
      all += std::to_string(r) + ": " + reason + "\n";
  return all;
}

int Job::wait(std::uint32_t rank, std::chrono::milliseconds limit) {
  allow(~std::uint64_t{0});
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (exited_[rank] == -1 && std::chrono::steady_clock::now() < deadline) {
    all_stopped();
    ::poll(nullptr, 0, 2);
  }
  return exited_[rank];
}

std::string Job::last_line(std::uint32_t rank) {
  std::string last;
  for (std::string line; !(line = programs[rank].read_line(100ms)).empty();) last = line;
  return last;
}

std::string Job::stderr_of(std::uint32_t rank) const {
  std::ifstream file(cluster.home(rank) + ".program.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Job::refusal_of(std::uint32_t rank) const {
  std::ifstream file(cluster.run_dir(rank) + "/refused");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t Job::completed(std::uint32_t rank) { return status(rank)["completed"].get<std::uint64_t>(); }

void Job::go_through(int epochs, std::uint64_t supersteps) {
  ASSERT_TRUE(reach(3)) << stderr_of(0);
  for (int i = 1; i < epochs; ++i) {
    ASSERT_TRUE(turn()) << "epoch " << epoch_ << "\n" << stderr_of(0) << stderr_of(1);
    ASSERT_TRUE(reach(completed() + supersteps));
  }
}

void expect_postponed_until_released(const std::string& program, const std::string& thing, const std::string& reason) {
  Job job({.ranks = 2, .program = program, .arguments = {kMany, thing}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains(reason)) << job.reasons();
  job.drop_gate(1);
  ASSERT_TRUE(job.reach(job.completed() + 5)) << "a dropped gate blocks no rank";

  ASSERT_EQ(job.gate(), Job::Gate::kPostponed);
  job.programs[0].signal(SIGUSR1);
  ASSERT_EQ(job.wait_for_gate(kForever), Job::Gate::kStopped) << job.reasons() << job.stderr_of(0) << job.stderr_of(1);
  job.next_epoch();
  ASSERT_TRUE(job.turn());
  job.finish_ok();
}

void Job::finish_ok() {
  programs[0].signal(SIGUSR1);
  expect_ok();
}

void Job::expect_ok() {
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    EXPECT_EQ(wait(r), 0) << "rank " << r << "\n" << stderr_of(r) << status(r).dump();
    EXPECT_TRUE(last_line(r).starts_with("ok ")) << "rank " << r;
  }
}

}  // namespace bsp::test
