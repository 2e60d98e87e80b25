// What a LinkGroup does in its thread: passes messages between the links and the machine of the current generation. Used by
// the .cc files of link_group only.
#pragma once

#include <deque>
#include <format>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/net/link.h"
#include "operator/exchange/link_group.h"
#include "operator/exchange/once.h"

namespace bsp::exchange {

using ViewPromise = std::promise<Result<View>>;
// Waits until all members have confirmed the messages sent to them so far.
struct Confirmation {
  std::vector<std::uint64_t> up_to;  // by member: the number of the next message
  std::promise<Result<void>> done;
};

// Only the loop's thread may use the members below, except `loop`, `deciding` and the const ones.
struct LinkGroup::State {
  struct Peer {
    std::string address;
    std::unique_ptr<net::LinkPeer> link;  // null: its host name hasn't been resolved yet
    std::future<Result<std::string>> resolving;
    std::deque<Message> outbox;  // unconfirmed messages; the first has the number `first`
    std::uint64_t first = 1;
    bool asking = false;                                    // a request is pending, or a retry is scheduled
    bool probe = false;                                     // send a request even without messages
    net::SteadyTime silent_since = net::SteadyTime::max();  // max: it answered the last request
    std::uint64_t instance = 0;                             // 0: not known yet in this generation
    Once taken;                                             // its messages
  };

  State(net::TlsContext tls, Options o) : context(std::move(tls)), options(std::move(o)), names(options.resources) {}

  void begin(std::uint64_t to, std::vector<double> own, std::vector<double> carried);
  bool move_to(std::uint64_t to);
  void run(const std::function<void(Protocol&, Output&)>& what);
  void pump(Member to);
  void answered(Member to, std::size_t count, Result<net::Answer> answer);
  void retry(Member to, const Error& error);
  void silent(Member peer, const Error& error);
  void lost(Member peer, std::string_view why);
  void confirm();
  void serve(net::Request request, net::Reply reply);
  Result<nlohmann::json> take(const net::Request& request);
  std::uint32_t number_of(const std::string& name);
  Message renumbered(Message message, std::span<const std::uint32_t> numbers) const;
  bool has_restarted(Member peer, std::uint64_t instance);
  void resolve(Member peer);
  void resolved(Member peer);
  void tick();
  void decided(const std::vector<Assignment>& assignments);
  void close();
  // Runs `work` in the loop's thread and waits for it.
  void on_loop(const std::function<void()>& work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  [[nodiscard]] std::string label(Member m) const {
    return std::format("{} of group {}", options.identities[m], options.name);
  }

  const net::TlsContext context;
  const Options options;
  const std::uint64_t instance = std::random_device{}() + 1ull;
  net::Loop loop;
  std::unique_ptr<net::LinkServer> server;
  std::thread thread;
  std::mutex deciding;  // one decide() at a time

  std::vector<std::string> names;  // of the resources, by this member's numbers
  std::uint64_t generation = 1;
  std::uint64_t next = 0;              // the generation to move to after the decision; 0: none
  std::unique_ptr<Protocol> protocol;  // null: not joined
  std::vector<Peer> peers;
  bool wanted = false;                         // want_decision() has no result yet
  std::shared_ptr<ViewPromise> waiter;         // receives the view
  std::shared_ptr<Confirmation> confirmation;  // of the last decision, if its maker waits
  bool open = false;                           // a Decision exists
  bool closed = false;
};

}  // namespace bsp::exchange
