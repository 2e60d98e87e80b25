// The sidecar of a pod: what its seats share, and the handlers of the verbs that concern the pod.
//
// One thread (the loop) owns all of this. PMIx has its own thread, a checkpoint's stream another one while it lasts, and
// so has the benchmark at the start. State that a restarted sidecar needs is in <run dir>/sidecar/state (JSON) and in
// the seats' rings; bsp-init's hello provides everything else.
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
#include "sidecar/agent/config.h"
#include "sidecar/agent/epochs.h"
#include "sidecar/agent/fence.h"
#include "sidecar/agent/liveness.h"
#include "sidecar/agent/seat.h"

namespace bsp::sidecar {

class Sidecar {
 public:
  static Result<std::unique_ptr<Sidecar>> start(net::Loop& loop, Config config);
  ~Sidecar();
  Sidecar(const Sidecar&) = delete;
  Sidecar& operator=(const Sidecar&) = delete;

  // The port it listens on, for a configuration that left it open.
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  // The verbs that name a token.
  static std::vector<std::string_view> acting_verbs();

 private:
  Sidecar(net::Loop& loop, net::TlsContext context, Config config);
  Result<void> begin();

  // verbs.cc
  using Fields = nlohmann::json;
  enum Callers : unsigned {
    kOperator = 1,   // names::kOperatorIdentity
    kMembers = 2,    // pods of the open or a prepared epoch
    kAnnounced = 4,  // any pod: the handler checks it
    kActs = 8,       // with a token (crds/wire.h)
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
  // The same for verbs of a seat (seat.h), and for those that answer later.
  template <auto function>
  void seat_at_once(net::Request& request, net::Reply reply);
  template <auto function>
  void seat_changing(net::Request& request, net::Reply reply);
  template <auto function>
  void at_seat(net::Request& request, net::Reply reply);
  // The seat that a request names; the first if it names none.
  Result<Seat*> seat_of(const net::Request& request);
  Result<Fields> prepare_epoch(const net::Request& request);
  void set_report(net::Request& request, net::Reply reply);
  void probe_ranks(net::Request& request, net::Reply reply);
  Result<Fields> alive(const net::Request& request);
  Result<Fields> take_part(net::Request& request);
  void deliver(net::Request& request, net::Reply reply);
  Result<Fields> ping(const net::Request& request);
  void modex(net::Request& request, net::Reply reply);
  void checkpoint(net::Request& request, net::Reply reply);

  // sidecar.cc: state.
  Result<void> open_seats();
  // Ends the programs of a pod that is cut off.
  [[nodiscard]] std::unique_ptr<Fence> make_fence();
  [[nodiscard]] std::optional<net::SteadyTime> saved_fresh() const;  // by the previous sidecar
  // Unless a previous sidecar has the result, or a program may be computing: a benchmark would disturb it, and it the benchmark.
  void begin_benchmark();
  std::optional<wire::CpuBenchmark> take_benchmark();
  void refresh();       // all seats
  Result<void> save();  // retryable
  Result<void> adopt();

  net::Loop& loop_;
  net::TlsContext context_;
  Config config_;
  const std::shared_ptr<const storage::Storage> storage_;
  Epochs epochs_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::optional<wire::CpuBenchmark> cpu_;
  std::unique_ptr<BenchmarkThread> benchmark_;  // null: not begun, or its result is taken
  std::unique_ptr<Fence> fence_;
  std::unique_ptr<net::LinkServer> server_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<net::CredentialsWatch> credentials_;  // the operator renews them in the pod's Secret
  enum class Saving {
    kDone,
    kFailed,
    kLater
  } saving_ = Saving::kDone;  // kLater: what is saved is not known completely yet
};

}  // namespace bsp::sidecar
