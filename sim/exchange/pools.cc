#include "sim/exchange/pools.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

#include "sim/exchange/dice.h"

namespace bsp::sim::exchange {
namespace {

namespace ex = bsp::exchange;

class PoolsSim {
 public:
  PoolsSim(const PoolsParams& params, ex::Mechanism mechanism)
      : params_(params),
        capacity_(params.replicas * params.slots_for_a_replica / params.pools),
        used_(params.pools),
        dice_(params.seed) {
    const std::vector<double> nothing(std::size_t{params.replicas} * params.pools);
    for (std::uint32_t i = 0; i < params.replicas; ++i)
      replicas_.push_back(
          {.protocol = ex::make_protocol(
               mechanism, {.self = i, .members = params.replicas, .resources = params.pools, .initial = nothing})});
  }

  PoolsOutcome run() {
    make_requests();
    const std::vector<double> own(params_.pools);
    for (std::uint32_t i = 0; i < replicas_.size(); ++i)
      run_protocol(i, 0, [&](ex::Protocol& p, ex::Output& out) { p.start(own, out); });
    while (!events_.empty()) {
      std::pop_heap(events_.begin(), events_.end());
      const PoolEvent event = std::move(events_.back());
      events_.pop_back();
      handle(event);
    }
    return outcome_;
  }

 private:
  enum class PoolEventKind : std::uint8_t { kRequest, kMessage, kDecide, kStarted, kEnded };
  struct Job {
    std::uint32_t slots = 0;
    double hold = 0;
    std::uint32_t pool = 0;
  };
  struct PoolEvent {
    double time = 0;
    std::uint64_t order = 0;
    PoolEventKind kind = PoolEventKind::kRequest;
    std::uint32_t replica = 0;  // of a message: the sender
    Job job{};
    std::shared_ptr<const ex::Send> send{};
    friend bool operator<(const PoolEvent& a, const PoolEvent& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  struct Replica {
    std::unique_ptr<ex::Protocol> protocol;
    std::deque<Job> queue{};  // undecided requests
    bool wanting = false;
    double asked_at = 0;
    double busy_until = 0;
  };

  void at(double time, PoolEventKind kind, std::uint32_t replica, Job job,
          std::shared_ptr<const ex::Send> send = nullptr) {
    events_.push_back({time, ++order_, kind, replica, job, std::move(send)});
    std::push_heap(events_.begin(), events_.end());
  }

  // Drawn before the run, replica by replica, so that all mechanisms get the same requests.
  void make_requests() {
    const double mean_slots = (1 + params_.most_slots) / 2.0;
    const double each =
        params_.wanted * params_.slots_for_a_replica / (mean_slots * params_.hold);  // requests/s of a replica
    for (std::uint32_t i = 0; i < replicas_.size(); ++i)
      for (double time = dice_.exponential(1 / each); time < params_.span; time += dice_.exponential(1 / each)) {
        double when = time;
        if (params_.burst > 0) {
          const double start = std::floor(time / params_.period) * params_.period;
          when = start + (time - start) / params_.period * params_.burst;
        }
        const std::uint32_t slots = 1 + dice_.below(params_.most_slots);
        at(when, PoolEventKind::kRequest, i, {.slots = slots, .hold = dice_.exponential(params_.hold)});
      }
  }

  template <class Call>
  void run_protocol(std::uint32_t i, double time, Call&& call) {
    Replica& r = replicas_[i];
    ex::Output out;
    call(*r.protocol, out);
    r.busy_until = std::max(r.busy_until, time);
    for (ex::Send& send : out.sends) {
      outcome_.messages += send.to.size();
      r.busy_until += params_.message * static_cast<double>(send.to.size());
      at(r.busy_until + params_.latency, PoolEventKind::kMessage, i, {},
         std::make_shared<const ex::Send>(std::move(send)));
    }
    if (!out.ready) return;
    outcome_.waited += r.busy_until - r.asked_at;
    at(r.busy_until + params_.thinking, PoolEventKind::kDecide, i, {});
  }

  void want(std::uint32_t i, double time) {
    Replica& r = replicas_[i];
    if (r.wanting || r.queue.empty()) return;
    r.wanting = true;
    r.asked_at = time;
    run_protocol(i, time, [](ex::Protocol& p, ex::Output& out) { p.want_decision(out); });
  }

  void handle(const PoolEvent& event) {
    const std::uint32_t i = event.replica;
    switch (event.kind) {
      case PoolEventKind::kRequest:
        replicas_[i].queue.push_back(event.job);
        return want(i, event.time);
      case PoolEventKind::kMessage:
        for (const ex::Member to : event.send->to) {
          Replica& r = replicas_[to];
          r.busy_until = std::max(r.busy_until, event.time) + params_.message;
          run_protocol(to, r.busy_until,
                       [&](ex::Protocol& p, ex::Output& out) { p.received(i, event.send->message, out); });
        }
        return;
      case PoolEventKind::kDecide:
        return decide(i, event.time);
      case PoolEventKind::kStarted:
        return run_protocol(i, event.time, [&](ex::Protocol& p, ex::Output& out) {
          p.load_changed(event.job.pool, event.job.slots, true, out);
        });
      case PoolEventKind::kEnded:
        used_[event.job.pool] -= event.job.slots;
        return run_protocol(i, event.time, [&](ex::Protocol& p, ex::Output& out) {
          p.load_changed(event.job.pool, -static_cast<double>(event.job.slots), false, out);
        });
    }
  }

  void decide(std::uint32_t i, double time) {
    Replica& r = replicas_[i];
    Job job = r.queue.front();
    r.queue.pop_front();
    double least = INFINITY;
    for (std::uint32_t pool = 0; pool < params_.pools; ++pool) {
      const double taken = r.protocol->view().total(pool);
      if (taken >= least) continue;
      least = taken;
      job.pool = pool;
    }
    std::vector<ex::Assignment> assignments;
    if (least + job.slots <= capacity_) {
      assignments.push_back({.to = i, .resource = job.pool, .amount = static_cast<double>(job.slots)});
      used_[job.pool] += job.slots;
      ++outcome_.placed;
      if (used_[job.pool] > capacity_) ++outcome_.overbooked;
      at(time + params_.starting, PoolEventKind::kStarted, i, job);
      at(time + params_.starting + job.hold, PoolEventKind::kEnded, i, job);
    } else {
      ++outcome_.no_slots;
      if (time < params_.span) at(time + params_.again, PoolEventKind::kRequest, i, job);
    }
    r.wanting = false;
    run_protocol(i, time, [&](ex::Protocol& p, ex::Output& out) { p.decided(assignments, out); });
    want(i, time);
  }

  const PoolsParams& params_;
  const std::uint32_t capacity_;     // of a pool
  std::vector<std::uint32_t> used_;  // slots actually in use
  Dice dice_;
  std::vector<Replica> replicas_;
  std::vector<PoolEvent> events_;  // a heap, earliest first
  std::uint64_t order_ = 0;
  PoolsOutcome outcome_;
};

}  // namespace

PoolsOutcome place_on_pools(const PoolsParams& params, ex::Mechanism mechanism) {
  return PoolsSim(params, mechanism).run();
}

}  // namespace bsp::sim::exchange
