// The sidecar of one rank: everything it holds, and what its verbs do.
//
// One thread (the loop) owns all of this. PMIx has a thread of its own, a checkpoint's stream one more
// while it lasts. State that a restarted sidecar needs is kept in <run dir>/sidecar/state (JSON) and in the
// ring; bsp-init's hello brings everything else.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/credentials_watch.h"
#include "base/net/link.h"
#include "crds/wire.h"
#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/agent/config.h"
#include "sidecar/agent/control_server.h"
#include "sidecar/agent/epochs.h"
#include "sidecar/agent/fence.h"
#include "sidecar/agent/liveness.h"
#include "sidecar/agent/program.h"
#include "sidecar/agent/transfers.h"

namespace bsp::sidecar {

class Sidecar {
 public:
  static Result<std::unique_ptr<Sidecar>> start(net::Loop& loop, Config config);
  ~Sidecar();
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  // The port we listen on, for a configuration that left it open.
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

 private:
  Sidecar(net::Loop& loop, net::TlsContext context, Config config, collect::RingFile ring);
  Result<void> begin();

  // verbs.cc
  using Fields = nlohmann::json;
  enum Askers : unsigned {
    kOperator = 1,   // names::kOperatorIdentity
    kMembers = 2,    // pods of the open or a prepared epoch
    kAnnounced = 4,  // any pod: what is done judges it
  };
  struct Verb {
    std::string_view name;
    unsigned askers;
    void (Sidecar::*handle)(net::Request& request, net::Reply reply);
  };
  static std::span<const Verb> verbs();
  [[nodiscard]] bool may_ask(const Verb& verb, const std::string& peer) const;
  void handle(net::Request request, net::Reply reply);
  template <auto function>
  void at_once(net::Request& request, net::Reply reply);
  template <auto function>
  void changing(net::Request& request, net::Reply reply);
  Result<Fields> status(const net::Request& request);
  void watch(net::Request& request, net::Reply reply);
  Result<Fields> prepare_epoch(const net::Request& request);
  Result<Fields> open_epoch(const net::Request& request);
  Result<Fields> arm_gate(const net::Request& request);
  Result<Fields> commit_gate(const net::Request& request);
  Result<Fields> cancel_gate(const net::Request& request);
  Result<Fields> receive(const net::Request& request);
  Result<Fields> send_checkpoint(const net::Request& request);
  Result<Fields> restore(const net::Request& request);
  void discard(net::Request& request, net::Reply reply);
  Result<Fields> kill(const net::Request& request);
  Result<Fields> report(const net::Request& request);
  void set_report(net::Request& request, net::Reply reply);
  void who_is_heard(net::Request& request, net::Reply reply);
  Result<Fields> alive(const net::Request& request);
  Result<Fields> take_part(net::Request& request);
  Result<Fields> deliver(net::Request& request);
  Result<Fields> ping(const net::Request& request);
  void modex(net::Request& request, net::Reply reply);
  void checkpoint(net::Request& request, net::Reply reply);

  // sidecar.cc: state.
  void on_init_message(const control::FromInit& message);
  void on_init_lost();
  // Now, or once nobody needs this pod.
  void let_init_end();
  void end_program(const std::string& why);
  // Sends SIGCONT's request if the open epoch is this program's next one.
  void continue_if_due();
  // To be called once the program that a sidecar before us had is known. If it is opening an epoch, the PMIx server that
  // it opens it with is gone: it is ended, unless it had all it needed.
  void kill_if_opening_without_server();
  // What ends the program of a pod that is cut off.
  [[nodiscard]] std::unique_ptr<Fence> make_fence();
  [[nodiscard]] std::optional<net::SteadyTime> kept_fresh() const;  // by a sidecar before us
  void vouch(net::SteadyTime fresh);                                // to bsp-init
  // The program has stopped at the gate of the order.
  void send_if_ordered();
  void refresh();  // computes the status and answers the watchers if it has changed
  void schedule_poll();
  [[nodiscard]] wire::RankStatus current_status() const;
  [[nodiscard]] bool continued() const;
  // The program has entered this epoch, or a later one.
  [[nodiscard]] bool has_entered(std::uint64_t epoch) const;
  void save();
  void adopt();

  struct Watcher {
    net::Reply reply;
    net::Loop::TimerId timer;
  };
  // Where this rank moves from the gate at `superstep`, as commitGate said. It ends with that gate: nothing is sent
  // after the operator has begun to take the gate back. Lost with this process; the operator then asks with `send`.
  struct Order {
    std::uint64_t superstep = 0;
    std::string migration;
    net::Peer target;
  };

  net::Loop& loop_;
  net::TlsContext context_;
  Config config_;
  collect::RingFile ring_;
  Epochs epochs_;
  Transfers transfers_;
  Program program_;
  std::string abort_message_;
  wire::RankStatus status_;
  std::map<std::uint64_t, Watcher> watchers_;
  std::uint64_t next_watcher_ = 1;
  std::optional<Order> order_;
  std::unique_ptr<Fence> fence_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<net::LinkServer> server_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<net::CredentialsWatch> credentials_;  // the operator renews them in the pod's Secret
  net::Loop::TimerId poll_ = 0;
  net::Loop::TimerId bye_ = 0;            // not 0: bsp-init is asked to stay
  std::optional<net::SteadyTime> ended_;  // the program, as far as this process knows
  bool ring_damage_logged_ = false;
  bool took_over_ = false;  // a sidecar before us opened the epoch, and bsp-init has not come to us yet
};

}  // namespace bsp::sidecar
