// A seat: an app container of this pod, and what the sidecar knows and keeps of the rank whose program runs there.
//
// Everything here is in the loop's thread. State that a restarted sidecar needs is saved with the pod's (sidecar.h) and in the
// seat's ring; bsp-init's hello provides everything else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/net/link.h"
#include "base/net/loop.h"
#include "crds/wire.h"
#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/agent/config.h"
#include "sidecar/agent/control_server.h"
#include "sidecar/agent/epochs.h"
#include "sidecar/agent/fence.h"
#include "sidecar/agent/program.h"
#include "sidecar/agent/saves.h"
#include "sidecar/agent/transfers.h"

namespace bsp::sidecar {

// The answer of a verb that has none but success: {}.
Result<nlohmann::json> nothing(Result<void> result);

class Seat {
 public:
  // What the seats of a pod share, and what they need of it.
  struct Pod {
    net::Loop& loop;
    net::TlsContext context;
    const Config& config;
    const std::shared_ptr<const storage::Storage>& storage;  // null: there is none
    Epochs& epochs;
    std::function<Fence&()> fence;
    std::function<Result<void>()> save;  // an error that may pass; it has been logged
    std::function<bool()> is_saved;
    std::function<void()> stop_benchmark;                          // a program is about to compute, or all ranks wait
    std::function<std::optional<wire::CpuBenchmark>()> benchmark;  // its result, if there is one by now
  };

  // Creates the seat's directory and opens its ring.
  static Result<std::unique_ptr<Seat>> open(Pod pod, std::uint32_t number);
  ~Seat();
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
  // Once the saved state is adopted: listens for bsp-init.
  Result<void> listen();

  // seat_verbs.cc
  using Fields = nlohmann::json;
  Result<Fields> status(const net::Request& request);
  void watch(net::Request& request, net::Reply reply);
  Result<Fields> open_epoch(const net::Request& request);
  Result<Fields> arm_gate(const net::Request& request);
  Result<Fields> commit_gate(const net::Request& request);
  Result<Fields> cancel_gate(const net::Request& request);
  Result<Fields> receive(const net::Request& request);
  Result<Fields> send_checkpoint(const net::Request& request);
  Result<Fields> restore(const net::Request& request);
  void discard(net::Request& request, net::Reply reply);
  Result<Fields> save_image(const net::Request& request);
  Result<Fields> load_image(const net::Request& request);
  Result<Fields> keep_sets(const net::Request& request);
  Result<Fields> kill(const net::Request& request);
  Result<Fields> report(const net::Request& request);
  void checkpoint(net::Request& request, net::Reply reply);

  // seat.cc
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] wire::RankReport make_report(std::uint64_t since, std::uint64_t every) const;
  [[nodiscard]] bool exited() const { return program_.exited(); }
  // bsp-init was connected and isn't any more; it may come back.
  [[nodiscard]] bool lost_init() const { return program_.state && !program_.init_connected; }
  // Its program may run on by itself.
  [[nodiscard]] bool computes() const { return !program_.exited() && !program_.stopped_at_gate(*ring_); }
  [[nodiscard]] bool expects(const std::string& migration) const { return transfers_.status().migration == migration; }
  [[nodiscard]] bool ring_adopted() const { return ring_.adopted(); }
  void aborted(int status, const std::string& message);
  void end_program(const std::string& why);
  void send_fresh(net::SteadyTime fresh);  // to bsp-init
  // The operator is back: bsp-init of a program that has ended may stay no longer.
  void operator_spoke();
  void refresh();  // computes the status and answers the watchers if it has changed

  // With spec.cpu: Common a rank's first plan says with which CPU features its program starts. Call after each that is prepared.
  void start_if_due();
  // Tells the program which ranks a prepared epoch takes away from it (ring.h). Call after each that is prepared or opened.
  void tell_parting();
  [[nodiscard]] nlohmann::json saved() const;
  void adopt(const nlohmann::json& saved);
  // A previous sidecar opened the epoch, and bsp-init has not connected yet.
  void take_over() { took_over_ = pod_.epochs.opened(number_).has_value(); }

 private:
  Seat(Pod pod, std::uint32_t number, collect::RingFile ring);
  void on_init_message(const control::FromInit& message);
  void on_init_lost();
  // The rank has left, and bsp-init waits for another: nothing of it may count for the next one.
  void become_free();
  // Now, or once no other rank needs this pod.
  void dismiss_init();
  // Whether bsp-init is of a version that this sidecar understands.
  void judge(const control::Hello& hello);
  // Asks bsp-init to continue the program if the open epoch is its next one.
  void continue_if_due();
  // Call once the program inherited from a previous sidecar is known. If it is opening an epoch, it depends on a PMIx
  // server that is gone: ends the program unless it needs nothing more from the server.
  void kill_if_opening_without_server();
  // The program has stopped at the gate of the order.
  void send_if_ordered();
  [[nodiscard]] Result<ImageKeys> image_of(const wire::SaveRequest& asked) const;
  Result<void> begin_save(const wire::SaveRequest& asked);
  void schedule_poll();
  [[nodiscard]] wire::RankStatus current_status() const;
  [[nodiscard]] bool continued() const;
  // The program has entered this epoch, or a later one.
  [[nodiscard]] bool has_entered(std::uint64_t epoch) const;

  struct Watcher {
    net::Reply reply;
    net::Loop::TimerId timer;
  };
  // Where this rank moves from the gate at `superstep`, or for which set it is dumped there, as commitGate requested. The
  // order ends with that gate: nothing is sent after the operator has begun to cancel it. It isn't saved; after a restart the
  // operator asks with `send` or `save`.
  struct Order {
    std::uint64_t superstep = 0;
    std::string migration;
    net::Peer target;
    std::optional<wire::SaveRequest> save;
  };
  struct End {
    net::Loop::TimerId stays = 0;           // not 0: bsp-init was asked to stay
    std::optional<net::SteadyTime> seen{};  // when the program ended, as far as this process knows
  };

  Pod pod_;
  const std::uint32_t number_;
  std::uint32_t rank_;
  collect::RingFile ring_;
  Transfers transfers_;
  Saves saves_;
  Program program_;
  std::string abort_message_;
  wire::RankStatus status_;
  std::map<std::uint64_t, Watcher> watchers_;
  std::uint64_t next_watcher_ = 1;
  std::optional<Order> order_;
  std::unique_ptr<ControlServer> control_;
  net::Loop::TimerId poll_ = 0;
  End end_;
  bool ring_damage_logged_ = false;
  bool took_over_ = false;
};

}  // namespace bsp::sidecar
