// All-gathers among the sidecars of one epoch, from which PMIx fences and groups are built.
//
//   member ──gather{epoch, key, rank} + data──> root (the lowest rank of the members)
//   root, once all have arrived ──deliver{epoch, key, context_id} + all data──> every member
//
// No member waits for ever: while something is missing, a waiting member asks the silent sidecars once a second
// whether they and their programs are alive (`ping`). One that denies, or can't be reached for 6 s, fails the
// collective at every member. There is no limit on how long a living program may take: it may load its input for
// minutes before MPI_Init.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/net/link.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::pmix {

class AllGather {
 public:
  // Sends a request to the sidecar of `rank` in this epoch.
  using Send = std::function<void(std::uint32_t rank, std::string_view verb, nlohmann::json fields, std::string body,
                                  net::LinkPeer::Done done)>;

  AllGather(net::Loop& loop, std::uint64_t epoch, std::uint32_t rank, std::uint32_t size, Send send);
  ~AllGather();
  AllGather(const AllGather&) = delete;
  AllGather& operator=(const AllGather&) = delete;

  // The local program has entered a collective. An empty member list means all ranks.
  void enter(std::string key, std::vector<std::uint32_t> members, std::string data, Server::GatherDone done);

  // Messages from other sidecars (verbs gather and deliver).
  Result<void> gather(const std::string& key, std::uint32_t from, std::string data);
  Result<void> deliver(const std::string& key, Result<Gathered> all);

  // Fails all pending and future collectives.
  void abandon(const Error& why);

 private:
  struct Pending {
    bool entered = false;
    std::vector<std::uint32_t> members;          // known once entered
    std::map<std::uint32_t, std::string> parts;  // at the root: the parts received
    Server::GatherDone done;
    // When each rank that is waited for became unreachable.
    std::map<std::uint32_t, net::SteadyTime> silent_since;
  };
  [[nodiscard]] std::size_t max_part() const;
  [[nodiscard]] bool has_ended(const std::string& key) const;
  void send_part(const std::string& key, std::uint32_t root, const std::string& data);
  void complete_if_all_arrived(const std::string& key);
  void send_result(std::uint32_t to, const std::string& key, const Result<Gathered>& all, net::SteadyTime deadline);
  void finish(const std::string& key, Result<Gathered> all);
  void fail_at_all_members(const std::string& key, const Error& why);
  void check_silent_members();
  void heard(const std::string& key, std::uint32_t rank, const Result<net::Answer>& answer);

  net::Loop& loop_;
  std::uint64_t epoch_;
  std::uint32_t rank_;
  std::uint32_t size_;
  Send send_;
  std::map<std::string, Pending> pending_;
  std::size_t held_ = 0;                                // bytes of all received parts
  std::map<std::string, std::uint64_t> entered_count_;  // how often a key was used, while keys differ
  // Collectives that failed before the local program entered them. All other ended ones were entered and are no
  // longer pending.
  std::deque<std::string> failed_early_;
  // Ranks given up once: Open MPI tries several collectives in a row, and each would wait again.
  std::map<std::uint32_t, Error> lost_;
  std::uint32_t last_context_ = 0;
  std::optional<Error> abandoned_;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for callbacks that outlive this object
};

}  // namespace bsp::pmix
