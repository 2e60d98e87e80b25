// The sidecar of one rank: all its state and the handlers of its verbs.
//
// One thread (the loop) owns all of this. PMIx has its own thread, a checkpoint's stream another one while it lasts, and
// so has the benchmark at the start. State that a restarted sidecar needs is in <run dir>/sidecar/state (JSON) and in
// the ring; bsp-init's hello provides everything else.
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
#include "sidecar/agent/benchmark.h"
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

  // The port it listens on, for a configuration that left it open.
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

 private:
  Sidecar(net::Loop& loop, net::TlsContext context, Config config, collect::RingFile ring);
  Result<void> begin();

  // verbs.cc
  using Fields = nlohmann::json;
  enum Callers : unsigned {
    kOperator = 1,   // names::kOperatorIdentity
    kMembers = 2,    // pods of the open or a prepared epoch
    kAnnounced = 4,  // any pod: the handler checks it
  };
  struct Verb {
    std::string_view name;
    unsigned allowed;
    void (Sidecar::*handle)(net::Request& request, net::Reply reply);
  };
  static std::span<const Verb> verbs();
  [[nodiscard]] bool is_allowed(const Verb& verb, const std::string& peer) const;
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
  void probe_ranks(net::Request& request, net::Reply reply);
  Result<Fields> alive(const net::Request& request);
  Result<Fields> take_part(net::Request& request);
  Result<Fields> deliver(net::Request& request);
  Result<Fields> ping(const net::Request& request);
  void modex(net::Request& request, net::Reply reply);
  void checkpoint(net::Request& request, net::Reply reply);

  // sidecar.cc: state.
  void on_init_message(const control::FromInit& message);
  void on_init_lost();
  // Now, or once no other rank needs this pod.
  void dismiss_init();
  void end_program(const std::string& why);
  // Asks bsp-init to continue the program if the open epoch is its next one.
  void continue_if_due();
  // Call once the program inherited from a previous sidecar is known. If it is opening an epoch, it depends on a PMIx
  // server that is gone: ends the program unless it needs nothing more from the server.
  void kill_if_opening_without_server();
  // Ends the program of a pod that is cut off.
  [[nodiscard]] std::unique_ptr<Fence> make_fence();
  [[nodiscard]] std::optional<net::SteadyTime> saved_fresh() const;  // by the previous sidecar
  void send_fresh(net::SteadyTime fresh);                            // to bsp-init
  // The program has stopped at the gate of the order.
  void send_if_ordered();
  // Unless a previous sidecar has the result, or its program may be computing: a benchmark would disturb it, and it the benchmark.
  void begin_benchmark();
  void take_benchmark();  // its result, once
  void refresh();         // computes the status and answers the watchers if it has changed
  void schedule_poll();
  [[nodiscard]] wire::RankStatus current_status() const;
  [[nodiscard]] bool continued() const;
  // The program has entered this epoch, or a later one.
  [[nodiscard]] bool has_entered(std::uint64_t epoch) const;
  void save();
  Result<void> adopt();

  struct Watcher {
    net::Reply reply;
    net::Loop::TimerId timer;
  };
  // Where this rank moves from the gate at `superstep`, as commitGate requested. The order ends with that gate:
  // nothing is sent after the operator has begun to cancel it. It isn't saved; after a restart the operator asks with
  // `send`.
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
  std::optional<wire::CpuBenchmark> cpu_;
  std::unique_ptr<BenchmarkThread> benchmark_;  // null: not begun, or its result is taken
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
  net::Loop::TimerId bye_ = 0;            // not 0: bsp-init was asked to stay
  std::optional<net::SteadyTime> ended_;  // when the program ended, as far as this process knows
  bool ring_damage_logged_ = false;
  bool took_over_ = false;  // a previous sidecar opened the epoch, and bsp-init has not connected yet
};

}  // namespace bsp::sidecar
