// All-gathers among the sidecars of one epoch, from which PMIx fences and groups are built.
//
//   server ──gather{epoch, key, rank} + data──> root (the server with the lowest rank of the members)
//   root, once all have arrived ──deliver{epoch, key, context_id, onward} + all data──> a few servers ──deliver──> a few more each
//
// All data is as large as there are ranks, so a root that sent it to each of 1,000 would send gigabytes while all of them stand
// still. It sends it to kFanOut, and each of these passes it on to a share of the others, and says to how many it came. Whoever
// missed it, since a server between was lost or is of a version that passes nothing on, gets it from the one that asked.
//
// The PMIx library collects what the members of one server contribute, so each server takes part once, under the lowest rank of
// its pod (placement.h).
//
// No server waits for ever: while something is missing, a waiting one asks the silent sidecars once a second
// whether they and the members' programs are alive (`ping`). One that denies, or can't be reached for 6 s, fails the
// collective at every server. There is no limit on how long a living program may take: it may load its input for
// minutes before MPI_Init.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/net/link.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::pmix {

class AllGather {
 public:
  // Sends a request to a server of this epoch.
  using Send = std::function<void(std::uint32_t server, std::string_view verb, nlohmann::json fields, std::string body,
                                  net::LinkPeer::Done done)>;

  // For `server` of the placement.
  AllGather(net::Loop& loop, std::uint64_t epoch, Placement placement, std::uint32_t server, Send send);
  ~AllGather();
  AllGather(const AllGather&) = delete;
  AllGather& operator=(const AllGather&) = delete;

  // The local members have entered a collective. An empty member list means all ranks.
  void enter(std::string key, std::vector<std::uint32_t> members, std::string data, Server::GatherDone done);

  // Messages from other sidecars (verbs gather and deliver).
  Result<void> gather(const std::string& key, std::uint32_t from, std::string data);
  // `onward`: servers to which it is passed on; `done` says how many of them have it.
  using Spread = std::move_only_function<void(std::uint64_t onward)>;
  void deliver(const std::string& key, Result<Gathered> all, const std::vector<std::uint32_t>& onward, Spread done);

  static constexpr std::size_t kFanOut = 8;

  // Fails all pending and future collectives.
  void abandon(const Error& why);

 private:
  struct Pending {
    bool entered = false;
    std::vector<std::uint32_t> members;          // ranks, known once entered
    std::vector<std::uint32_t> servers;          // theirs, ascending
    std::map<std::uint32_t, std::string> parts;  // at the root: the parts received
    Server::GatherDone done;
    // When each server that is waited for became unreachable.
    std::map<std::uint32_t, net::SteadyTime> silent_since;
  };
  [[nodiscard]] std::size_t max_part(std::uint32_t server) const;
  [[nodiscard]] std::vector<std::uint32_t> members_at(std::uint32_t server, const Pending& pending) const;
  [[nodiscard]] bool has_ended(const std::string& key) const;
  void send_part(const std::string& key, std::uint32_t root, const std::string& data);
  void complete_if_all_arrived(const std::string& key);
  using Whole = std::shared_ptr<const Result<Gathered>>;
  void send_result(std::uint32_t to, std::vector<std::uint32_t> onward, const std::string& key, const Whole& all,
                   net::SteadyTime deadline);
  void ask_to_deliver(std::uint32_t to, const std::vector<std::uint32_t>& onward, const std::string& key,
                      const Whole& all, net::LinkPeer::Done done);
  void send_result_to_all(const std::vector<std::uint32_t>& servers, const std::string& key, const Whole& all);
  void finish(const std::string& key, Result<Gathered> all);
  void fail_at_all_members(const std::string& key, const Error& why);
  void check_silent_members();
  void heard(const std::string& key, std::uint32_t server, const Result<net::Answer>& answer);

  net::Loop& loop_;
  std::uint64_t epoch_;
  Placement placement_;
  std::uint32_t server_;
  Send send_;
  std::map<std::string, Pending> pending_;
  std::size_t held_ = 0;                                // bytes of all received parts
  std::map<std::string, std::uint64_t> entered_count_;  // how often a key was used, while keys differ
  // Collectives that failed before the local members entered them. All other ended ones were entered and are no
  // longer pending.
  std::deque<std::string> failed_early_;
  // Servers given up once: Open MPI tries several collectives in a row, and each would wait again.
  std::map<std::uint32_t, Error> lost_;
  std::uint32_t last_context_ = 0;
  std::optional<Error> abandoned_;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for callbacks that outlive this object
};

}  // namespace bsp::pmix
