// The nodes and sidecars of a job's pods, played on addresses of this machine: what is created gets an address and a sidecar
// that answers over the real link with the certificate of its Secret; its program ends a superstep every so often.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/core/fd.h"
#include "base/net/link.h"
#include "crds/requests.h"
#include "operator/kube/client.h"
#include "tests/unit/net/loop_thread.h"

namespace bsp::controller {

struct FakeRanksOptions {
  std::string name_space = "default";
  std::chrono::nanoseconds superstep{5'000'000};
  std::function<double(std::uint32_t rank, std::uint64_t superstep)> compute_share = {};  // of a superstep; null: 0.5
};

// A network 127.N.0.0/16 that no other test on this machine uses while this lives: tests run side by side, and every sidecar
// listens on the same port.
class ReservedNetwork {
 public:
  ReservedNetwork();
  [[nodiscard]] unsigned number() const { return number_; }

 private:
  unsigned number_ = 0;
  Fd held_;  // bound to the network's last address
};

class FakeRanks {
 public:
  FakeRanks(kube::Client& client, FakeRanksOptions options);
  ~FakeRanks();
  FakeRanks(const FakeRanks&) = delete;
  FakeRanks& operator=(const FakeRanks&) = delete;

  // Gives those pods that have none an address and a sidecar; how many there are now. `node_of` chooses a node by the pod's Set.
  std::size_t bring_up(const std::function<std::string(const std::string& set, std::uint32_t rank)>& node_of);
  // Its sidecar answers no more.
  void silence(const std::string& pod);
  // Requests of this verb so far, of all ranks.
  [[nodiscard]] std::uint64_t asked(const std::string& verb);

 private:
  struct Rank;
  void serve(const std::shared_ptr<Rank>& rank, net::Request request, net::Reply reply);
  void answer_watch(const std::shared_ptr<Rank>& rank, std::uint64_t version,
                    std::chrono::steady_clock::time_point until, std::shared_ptr<net::Reply> reply);
  nlohmann::json status_of(Rank& rank) const;
  nlohmann::json report_of(Rank& rank, const wire::ReportRequest& request) const;
  [[nodiscard]] std::uint64_t completed(const Rank& rank) const;

  kube::Client& client_;
  const FakeRanksOptions options_;
  const ReservedNetwork network_;
  std::map<std::string, std::shared_ptr<Rank>> ranks_;  // by pod; loop's thread only
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> asked_;
  net::LoopThread thread_;
};

}  // namespace bsp::controller
