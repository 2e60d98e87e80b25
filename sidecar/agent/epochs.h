// The epochs this sidecar takes part in: the prepared ones, and the one that is open (or was last).
//
//   prepare(plan)  registers the PMIx namespace and connects to the peers ahead of time
//   open(n, seat)  lets the seat's program connect, writes its descriptor, forgets everything older
//
// Plans are part of the saved state, so that a restarted sidecar knows its peers.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/link.h"
#include "crds/wire.h"
#include "sidecar/agent/config.h"
#include "sidecar/agent/followed.h"
#include "sidecar/agent/pmix/all_gather.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::sidecar {

class Epochs {
 public:
  Epochs(net::Loop& loop, net::TlsContext context, const Config& config);
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  // MPI_Abort of a seat's program calls `on_abort`.
  using OnAbort = std::function<void(std::uint32_t seat, int status, const std::string& message)>;
  Result<void> start(OnAbort on_abort);
  // With other namespaces than PMIx's, of which a process can have one server.
  void start_with(std::unique_ptr<pmix::Namespaces> server) { server_ = std::move(server); }

  Result<void> prepare(wire::EpochPlan plan);
  // For the program of a seat, which runs as this user. True if this call opened it, false if it was open there already.
  Result<bool> open(std::uint64_t epoch, std::uint32_t seat, uid_t uid, gid_t gid);

  // The same for an epoch that a previous sidecar opened and the program has not entered yet: its descriptor names a
  // PMIx server that is gone.
  Result<void> renew(std::uint32_t seat, uid_t uid, gid_t gid);

  // The seat's rank has left: no epoch is open there.
  void vacate(std::uint32_t seat);

  // Whether the pod is in the open or a prepared epoch.
  [[nodiscard]] bool is_member(const std::string& pod) const;
  // The lowest rank of `pod` in that epoch, by which all-gathers name the pod.
  [[nodiscard]] Result<std::uint32_t> server_of(std::uint64_t epoch, const std::string& pod) const;
  // The rank that the latest plan with such a member gives to this seat.
  [[nodiscard]] std::optional<std::uint32_t> rank_at(std::uint32_t seat) const;
  // The seats of this pod that have these ranks in that epoch; those of all its ranks if none is named.
  [[nodiscard]] std::vector<std::uint32_t> seats_of(std::uint64_t epoch, const std::vector<std::uint32_t>& ranks) const;
  [[nodiscard]] std::optional<std::uint64_t> opened(std::uint32_t seat) const;
  [[nodiscard]] std::optional<std::uint64_t> opened() const;  // the latest that any seat has ever opened
  [[nodiscard]] const wire::EpochPlan* open_plan() const;     // null: none is open
  [[nodiscard]] std::uint64_t highest_prepared() const;
  // A bit for each rank of this pod in the epoch that is open at `seat`, ascending: whether the latest prepared epoch has it in another pod
  // than the rank of this seat.
  using Parting = std::array<std::uint64_t, wire::kMostSeats / 64>;
  [[nodiscard]] Parting parting(std::uint32_t seat) const;

  // The decisions that led to them.
  [[nodiscard]] Followed& followed() { return followed_; }
  [[nodiscard]] const Followed& followed() const { return followed_; }

  Result<pmix::AllGather*> all_gather(std::uint64_t epoch);
  void published(std::uint64_t epoch, std::uint32_t rank, pmix::Server::FetchDone done);
  net::LinkPeer& peer(const std::string& pod, const std::string& address);

  // The state to save for a restarted sidecar.
  [[nodiscard]] std::vector<wire::EpochPlan> plans() const;
  // `opened`: by seat; `latest`: opened().
  void adopt(std::vector<wire::EpochPlan> plans, std::vector<std::optional<std::uint64_t>> opened,
             std::optional<std::uint64_t> latest);

 private:
  struct Entry {
    wire::EpochPlan plan;
    std::vector<std::uint32_t> local;  // the ranks of this pod, ascending; none: the pod isn't in it
    std::unique_ptr<pmix::AllGather> all_gather;
    std::map<std::uint32_t, std::vector<std::string>> environments;  // of each local rank's program, once registered
  };
  Entry* find(const std::string& name_space);
  // Lets the programs of all local ranks connect: those of a pod run as the same user.
  Result<void> register_clients(Entry& entry, uid_t uid, gid_t gid);
  Result<void> write_descriptor(Entry& entry, std::uint32_t rank, uid_t uid, gid_t gid);
  Result<void> add(wire::EpochPlan plan);
  [[nodiscard]] Error not_here(const wire::EpochPlan& plan, std::uint32_t seat) const;
  void forget(std::uint64_t epoch);
  void forget_past();
  [[nodiscard]] bool is_past(std::uint64_t epoch) const;  // is not open and will not be opened
  void drop_unused_peers();

  net::Loop& loop_;
  net::TlsContext context_;
  const Config& config_;
  Followed followed_;
  std::unique_ptr<pmix::Namespaces> server_;
  std::map<std::uint64_t, Entry> entries_;
  std::vector<std::optional<std::uint64_t>> opened_;  // by seat
  std::optional<std::uint64_t> latest_;               // of them, also of those that a rank has left
  std::map<std::pair<std::string, std::string>, std::unique_ptr<net::LinkPeer>> peers_;
};

}  // namespace bsp::sidecar
