// Messages of a simulated world. Each is late by as much as the world says; those on one connection arrive in order, and what is
// under way when a connection is given up arrives nevertheless.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/net/link.h"

namespace bsp::simulation {

class World;

// What has arrived for one process, which takes it when it runs.
using Inbox = std::vector<std::move_only_function<void()>>;

class Mail {
 public:
  using Reply = std::move_only_function<void(Result<nlohmann::json>)>;

  void send(int at, std::move_only_function<void()> arrive) {
    under_way_.emplace(std::pair(at, ++sent_), std::move(arrive));
  }
  void deliver(int now);
  std::uint64_t connect() { return ++connections_; }

 private:
  std::map<std::pair<int, std::uint64_t>, std::move_only_function<void()>> under_way_;
  std::uint64_t sent_ = 0, connections_ = 0;
};

// Of one process: an operator, or the sidecar of a pod on that node.
class Transport final : public net::Transport {
 public:
  // `cut`: nothing leaves or reaches it now.
  Transport(World& world, std::string node, std::function<bool()> cut)
      : world_(world), node_(std::move(node)), cut_(std::make_shared<std::function<bool()>>(std::move(cut))) {}
  std::uint64_t connect(const net::Peer& peer) override;
  void send(std::uint64_t connection, const net::Peer& peer, std::string_view verb, nlohmann::json fields,
            std::string body, Answered answered) override;
  void take_in();

 private:
  World& world_;
  const std::string node_;
  const std::shared_ptr<std::function<bool()>> cut_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::map<std::uint64_t, int> last_at_;  // by connection
};

}  // namespace bsp::simulation
