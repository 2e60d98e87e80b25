// The epochs this sidecar takes part in: the prepared ones, and the one that is open (or was last).
//
//   prepare(plan)  registers the PMIx namespace and connects to the peers ahead of time
//   open(n)        lets the program connect, writes the descriptor, forgets everything older
//
// Plans are part of the saved state, so that a restarted sidecar knows its peers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/link.h"
#include "crds/wire.h"
#include "sidecar/agent/config.h"
#include "sidecar/agent/pmix/all_gather.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::sidecar {

class Epochs {
 public:
  Epochs(net::Loop& loop, net::TlsContext context, const Config& config);
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  // MPI_Abort calls `on_abort`.
  Result<void> start(std::function<void(int status, const std::string& message)> on_abort);

  Result<void> prepare(wire::EpochPlan plan);
  // True if this call opened it, false if it was open already.
  Result<bool> open(std::uint64_t epoch, uid_t uid, gid_t gid);

  // The same for an epoch that a previous sidecar opened and the program has not entered yet: its descriptor names a
  // PMIx server that is gone.
  Result<void> renew(uid_t uid, gid_t gid);

  // Whether the pod is in the open or a prepared epoch.
  [[nodiscard]] bool is_member(const std::string& pod) const;
  // The rank of `pod` in that epoch.
  [[nodiscard]] Result<std::uint32_t> rank_of(std::uint64_t epoch, const std::string& pod) const;
  [[nodiscard]] std::optional<std::uint64_t> opened() const { return opened_; }
  [[nodiscard]] const wire::EpochPlan* open_plan() const;  // null: none is open
  [[nodiscard]] std::uint64_t highest_prepared() const;

  Result<pmix::AllGather*> all_gather(std::uint64_t epoch);
  void published(std::uint64_t epoch, std::uint32_t rank, pmix::Server::FetchDone done);
  net::LinkPeer& peer(const std::string& pod, const std::string& address);

  // The state to save for a restarted sidecar.
  [[nodiscard]] std::vector<wire::EpochPlan> plans() const;
  void adopt(std::vector<wire::EpochPlan> plans, std::optional<std::uint64_t> opened);

 private:
  struct Entry {
    wire::EpochPlan plan;
    std::unique_ptr<pmix::AllGather> all_gather;
  };
  Entry* find(const std::string& name_space);
  Result<void> write_descriptor(const wire::EpochPlan& plan, const std::vector<std::string>& pmix);
  Result<void> add(wire::EpochPlan plan);
  void forget(std::uint64_t epoch);
  void forget_past();
  [[nodiscard]] bool is_past(std::uint64_t epoch) const;  // is not open and will not be opened
  void drop_unused_peers();

  net::Loop& loop_;
  net::TlsContext context_;
  const Config& config_;
  std::unique_ptr<pmix::Server> server_;
  std::map<std::uint64_t, Entry> entries_;
  std::optional<std::uint64_t> opened_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<net::LinkPeer>> peers_;
};

}  // namespace bsp::sidecar
