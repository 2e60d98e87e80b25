// All-gathers among the sidecars of one epoch: what PMIx fences and groups are made of.
//
//   member ──gather{epoch, key, rank} + data──> root (the lowest rank of the members)
//   root, once all are there ──deliver{epoch, key, context_id} + all data──> every member
//
// Nobody waits for ever: while something is missing, whoever waits asks the silent sidecars once a
// second whether they and their programs are still there (`ping`). One that says no, or cannot be
// reached for 6 s, fails the collective at every member. There is no limit on how long a living
// program may take: it may load its input for minutes before MPI_Init.
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

  // Our own program has entered a collective. An empty member list means all ranks.
  void enter(std::string key, std::vector<std::uint32_t> members, std::string data, Server::GatherDone done);

  // Messages of other sidecars (verbs gather and deliver).
  Result<void> gather(const std::string& key, std::uint32_t from, std::string data);
  Result<void> deliver(const std::string& key, Result<Gathered> all);

  // Fails everything that is under way and everything that comes.
  void abandon(const Error& why);

 private:
  struct Pending {
    bool entered = false;
    std::vector<std::uint32_t> members;          // known once entered
    std::map<std::uint32_t, std::string> parts;  // at the root: what has come
    Server::GatherDone done;
    // Silent since, per rank that we wait for and that could not be reached.
    std::map<std::uint32_t, net::SteadyTime> silent_since;
  };
  [[nodiscard]] std::size_t most_of_a_part() const;
  [[nodiscard]] bool has_ended(const std::string& key) const;
  void send_part(const std::string& key, std::uint32_t root, const std::string& data);
  void complete_if_all_there(const std::string& key);
  void send_result(std::uint32_t to, const std::string& key, const Result<Gathered>& all, net::SteadyTime give_up);
  void finish(const std::string& key, Result<Gathered> all);
  void fail_everywhere(const std::string& key, const Error& why);
  void look_around();
  void heard(const std::string& key, std::uint32_t rank, const Result<net::Answer>& answer);

  net::Loop& loop_;
  std::uint64_t epoch_;
  std::uint32_t rank_;
  std::uint32_t size_;
  Send send_;
  std::map<std::string, Pending> pending_;
  std::size_t held_ = 0;                                // bytes of all their parts
  std::map<std::string, std::uint64_t> entered_count_;  // how often a key was used: as long as there are different ones
  // Failures that came before our own program did. All else that has ended was entered and is pending no more.
  std::deque<std::string> failed_early_;
  // Given up once: Open MPI tries several collectives in a row, and each would wait anew.
  std::map<std::uint32_t, Error> gone_;
  std::uint32_t last_context_ = 0;
  std::optional<Error> abandoned_;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of callbacks that outlive us
};

}  // namespace bsp::pmix
