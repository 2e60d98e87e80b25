// A job's sidecars as processes on loopback, each with its certificate and run directory, and an operator's
// connection for each rank. The destructor ends all of them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/core/fd.h"
#include "base/net/link.h"
#include "base/net/pki.h"
#include "crds/wire.h"

namespace bsp::test {

// A child process; killed and reaped by the destructor. Its stdout can be read line by line.
class Process {
 public:
  Process() = default;
  Process(std::vector<std::string> command, std::vector<std::string> environment, std::string log, uid_t uid = 0);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // The next line of stdout; empty if none came within `limit` or the process has ended.
  std::string read_line(std::chrono::milliseconds limit);
  // The status from waitpid once it has ended; -1 if it hasn't within `limit`.
  int wait(std::chrono::milliseconds limit);
  void signal(int number);
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int open_descriptors() const;
  [[nodiscard]] long resident_kib() const;

 private:
  pid_t pid_ = -1;
  Fd out_;
  std::string buffer_;
};

class Cluster {
 public:
  // Pods of `seats` ranks each, in order; the last may have fewer. The number of a pod is that of its sidecar.
  explicit Cluster(std::uint32_t ranks, std::uint32_t seats = 1);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void start_sidecar(std::uint32_t pod, std::vector<std::string> environment = {});
  // Another pod, with a seat for each of these ranks, which may move there. Returns its number; start its sidecar.
  std::uint32_t add_pod(std::vector<std::uint32_t> seats);
  // Plans have the rank in its seat of that pod from now on; it is there after arrive().
  void plan_move(std::uint32_t rank, std::uint32_t pod);
  // The ranks that plan_move() named, which are there now.
  std::vector<std::uint32_t> arrive();
  // Sends the operator's request; fails the test if it is refused.
  net::Answer call(std::uint32_t rank, const char* verb, nlohmann::json fields = nlohmann::json::object());
  Result<net::Answer> try_call(std::uint32_t rank, const char* verb, nlohmann::json fields = nlohmann::json::object());
  void prepare(std::uint64_t epoch);
  void open(std::uint64_t epoch);

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(links_.size()); }
  [[nodiscard]] std::uint32_t pods() const { return static_cast<std::uint32_t>(sidecars.size()); }
  [[nodiscard]] std::uint32_t pod_of(std::uint32_t rank) const { return places_[rank].pod; }
  [[nodiscard]] std::vector<std::uint32_t> ranks_of(std::uint32_t pod) const;
  [[nodiscard]] std::string run_dir(std::uint32_t rank) const;
  // A link to it, which follows the rank.
  [[nodiscard]] std::string home(std::uint32_t rank) const { return directory_ + "/home" + std::to_string(rank); }
  [[nodiscard]] std::string pod(std::uint32_t rank) const;  // its name
  [[nodiscard]] std::string address(std::uint32_t rank) const;
  [[nodiscard]] wire::EpochPlan plan(std::uint64_t epoch) const;
  [[nodiscard]] net::TlsContext identity(const std::string& name) const;
  [[nodiscard]] std::string log(std::uint32_t rank) const;

  std::vector<Process> sidecars;
  bool without_init = true;  // of sidecars started from now on: they need no hello before they open an epoch

 private:
  struct Place {
    std::uint32_t pod = 0, seat = 0;
    bool operator==(const Place&) const = default;
  };
  void connect(std::unique_ptr<net::Link>& link, std::uint32_t pod);
  [[nodiscard]] std::string directory_of(std::uint32_t pod) const;
  [[nodiscard]] std::string identity_of(std::uint32_t pod) const;
  [[nodiscard]] std::string address_of(std::uint32_t pod) const;
  [[nodiscard]] std::string log_of(std::uint32_t pod) const;

  std::vector<std::vector<std::uint32_t>> seats_;  // of each pod: the ranks that it was made for
  std::uint32_t first_pods_;                       // those that the job began in
  std::vector<Place> places_, planned_;            // by rank
  std::string directory_;
  unsigned number_ = 0;  // index among the clusters of this process
  net::PemPair ca_;
  std::vector<std::unique_ptr<net::Link>> links_;      // by rank
  std::vector<std::unique_ptr<net::Link>> pod_links_;  // by pod, for what concerns no single rank
};

}  // namespace bsp::test
