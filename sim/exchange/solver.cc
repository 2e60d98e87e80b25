#include "sim/exchange/solver.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace bsp::sim::exchange {
namespace {

namespace ex = bsp::exchange;
using Process = std::uint32_t;

class Solver {
 public:
  Solver(const Workload& workload, const Cluster& cluster, std::optional<ex::Mechanism> mechanism, double threshold)
      : workload_(workload), cluster_(cluster), processes_(workload.queues.size()), true_(workload.queues.size()) {
    for (Process i = 0; i < true_.size(); ++i)
      for (const Task& task : workload.queues[i]) {
        if (task.front)
          ++processes_[i].fronts_left;
        else
          true_[i] += task.seconds;
      }
    if (!mechanism) return;
    for (Process i = 0; i < true_.size(); ++i)
      processes_[i].protocol = ex::make_protocol(
          *mechanism,
          {.self = i, .members = static_cast<std::uint32_t>(true_.size()), .threshold = threshold, .initial = true_});
  }

  Outcome run() {
    for (Process i = 0; i < processes_.size(); ++i) {
      Proc& p = processes_[i];
      run_protocol(i, 0, [&](ex::Protocol& protocol, ex::Output& out) {
        protocol.start({&true_[i], 1}, out);
        if (p.fronts_left == 0) protocol.no_more_decisions(out);
      });
      wake(i, 0);
    }
    while (!events_.empty()) {
      std::pop_heap(events_.begin(), events_.end());
      const Event event = std::move(events_.back());
      events_.pop_back();
      switch (event.kind) {
        case EventKind::kWake:
          awake(event.process, event.time);
          break;
        case EventKind::kComputed:
          computed(event.process, event.time);
          break;
        case EventKind::kArrival:
          arrived(event);
          break;
        case EventKind::kPoll:
          poll(event.process, event.time);
          break;
      }
    }
    const double decisions = std::max<double>(1, static_cast<double>(outcome_.decisions));
    outcome_.view_error /= decisions;
    outcome_.worst_error /= decisions;
    outcome_.peak /= decisions;
    outcome_.wait = outcome_.waited / decisions;
    return outcome_;
  }

 private:
  struct Mail {
    Process from = 0;
    std::shared_ptr<const ex::Send> send;  // null: work
    double work = 0;
  };
  enum class EventKind : std::uint8_t { kWake, kComputed, kArrival, kPoll };
  struct Event {
    double time = 0;
    std::uint64_t order = 0;  // breaks ties: in the order of creation
    EventKind kind = EventKind::kWake;
    Process process = 0;  // arrival: the receiver of work
    Mail mail{};
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  struct Proc {
    std::unique_ptr<ex::Protocol> protocol;
    std::deque<Mail> inbox{};     // load information
    std::deque<double> works{};   // shares that have arrived but the computing thread hasn't accepted
    std::deque<double> shares{};  // accepted; what is left of each
    std::size_t next = 0;         // of its own tasks
    std::size_t fronts_left = 0;
    bool computing = false;
    double current = 0;  // seconds of the task being computed
    bool current_is_share = false;
    double stolen = 0;  // by messages, while computing
    double busy_until = 0;
    bool wake_planned = false;
    bool poll_planned = false;
    bool waiting = false;  // for its view
    bool ready = false;
    double asked_at = 0;
    double held_since = -1;  // < 0: not held
  };

  void at(double time, EventKind kind, Process process) { at(time, kind, process, Mail{}); }
  void at(double time, EventKind kind, Process process, Mail mail) {
    events_.push_back({time, ++order_, kind, process, std::move(mail)});
    std::push_heap(events_.begin(), events_.end());
  }
  void wake(Process i, double time) {
    Proc& p = processes_[i];
    if (p.computing || p.wake_planned) return;
    p.wake_planned = true;
    at(std::max(time, p.busy_until), EventKind::kWake, i);
  }

  // Passes an event to the machine. Messages leave once the CPU has written them. Returns the CPU time.
  template <class Call>
  double run_protocol(Process i, double time, Call&& call) {
    Proc& p = processes_[i];
    if (!p.protocol) return 0;
    out_.sends.clear();
    out_.ready = false;
    call(*p.protocol, out_);
    if (out_.ready) p.ready = true;
    double cost = 0;
    for (ex::Send& send : out_.sends) {
      cost += cluster_.send * static_cast<double>(send.to.size());
      outcome_.messages += send.to.size();
      if (send.message.kind == ex::Kind::kReserve) outcome_.reservations += send.to.size();
      at(time + cost + cluster_.latency, EventKind::kArrival, i,
         {.from = i, .send = std::make_shared<const ex::Send>(std::move(send))});
    }
    outcome_.message_cpu += cost;
    return cost;
  }

  void arrived(const Event& event) {
    if (!event.mail.send) {
      processes_[event.process].works.push_back(event.mail.work);
      wake(event.process, event.time);
      return;
    }
    for (const Process to : event.mail.send->to) {
      Proc& p = processes_[to];
      p.inbox.push_back(event.mail);
      if (!cluster_.threaded) {
        wake(to, event.time);
      } else if (!p.poll_planned) {
        p.poll_planned = true;
        at(cluster_.poll * std::ceil(event.time / cluster_.poll), EventKind::kPoll, to);
      }
    }
  }

  // Reads all mail; returns the CPU time.
  double read(Process i, double time) {
    Proc& p = processes_[i];
    double cost = 0;
    while (!p.inbox.empty()) {
      const Mail mail = std::move(p.inbox.front());
      p.inbox.pop_front();
      cost += cluster_.receive;
      outcome_.message_cpu += cluster_.receive;
      cost += run_protocol(i, time + cost, [&](ex::Protocol& protocol, ex::Output& out) {
        protocol.received(mail.from, mail.send->message, out);
      });
    }
    return cost;
  }

  // The second thread.
  void poll(Process i, double time) {
    Proc& p = processes_[i];
    p.poll_planned = false;
    const double cost = read(i, time);
    if (p.computing) {
      p.stolen += cost;
    } else {
      p.busy_until = std::max(p.busy_until, time) + cost;
      wake(i, time);
    }
  }

  // Between two tasks.
  void awake(Process i, double time) {
    Proc& p = processes_[i];
    p.wake_planned = false;
    if (p.busy_until > time) return wake(i, p.busy_until);
    double cost = cluster_.threaded ? 0 : read(i, time);
    while (!p.works.empty()) {
      const double share = p.works.front();
      p.works.pop_front();
      p.shares.push_back(share);
      cost += cluster_.receive + run_protocol(i, time + cost, [&](ex::Protocol& protocol, ex::Output& out) {
                protocol.load_changed(0, share, true, out);
              });
    }
    if (cost > 0) {
      p.busy_until = time + cost;
      return wake(i, p.busy_until);
    }
    if (p.waiting && p.ready) return decide(i, time);
    if (p.waiting) return;
    const bool held = cluster_.hold && p.protocol && p.protocol->bound();
    if (p.held_since >= 0 && !held) outcome_.held += time - std::exchange(p.held_since, -1);
    if (!held) return go_on(i, time);
    const bool has_work = !p.shares.empty() || p.next < workload_.queues[i].size();
    if (has_work && p.held_since < 0) p.held_since = time;
  }

  void go_on(Process i, double time) {
    Proc& p = processes_[i];
    if (!p.shares.empty()) {
      p.current = std::min(p.shares.front(), workload_.params.panel_seconds);
      p.current_is_share = true;
    } else if (p.next < workload_.queues[i].size()) {
      const Task& task = workload_.queues[i][p.next];
      if (task.front) return want(i, time);
      p.current = task.seconds;
      p.current_is_share = false;
      ++p.next;
    } else {
      return;  // idle: woken by the next message
    }
    p.computing = true;
    at(time + p.current, EventKind::kComputed, i);
  }

  void computed(Process i, double time) {
    Proc& p = processes_[i];
    if (p.stolen > 0) {
      at(time + std::exchange(p.stolen, 0.0), EventKind::kComputed, i);
      return;
    }
    p.computing = false;
    if (p.current_is_share) {
      p.shares.front() -= p.current;
      if (p.shares.front() < 1e-12) p.shares.pop_front();
    }
    true_[i] -= p.current;
    outcome_.makespan = std::max(outcome_.makespan, time);
    const double cost = run_protocol(
        i, time, [&](ex::Protocol& protocol, ex::Output& out) { protocol.load_changed(0, -p.current, false, out); });
    p.busy_until = std::max(p.busy_until, time) + cost;
    wake(i, p.busy_until);
  }

  void want(Process i, double time) {
    Proc& p = processes_[i];
    p.waiting = true;
    p.asked_at = time;
    p.ready = !p.protocol;
    const double cost =
        run_protocol(i, time, [](ex::Protocol& protocol, ex::Output& out) { protocol.want_decision(out); });
    p.busy_until = time + cost;
    if (p.ready || !p.inbox.empty()) wake(i, p.busy_until);
  }

  void decide(Process i, double time) {
    Proc& p = processes_[i];
    p.waiting = p.ready = false;
    ++outcome_.decisions;
    outcome_.waited += time - p.asked_at;
    const double seconds = workload_.queues[i][p.next++].seconds;
    const std::vector<double> believed = beliefs(i);
    measure_error(believed);
    const std::vector<Share> shares = pour(believed, i, seconds, workload_.params.slaves);
    measure_peak(i, seconds, shares);

    std::vector<ex::Assignment> assignments;
    for (const Share& share : shares)
      assignments.push_back({.to = share.process, .resource = 0, .amount = share.seconds});
    double cost = cluster_.send * static_cast<double>(shares.size());
    cost += run_protocol(i, time + cost,
                         [&](ex::Protocol& protocol, ex::Output& out) { protocol.decided(assignments, out); });
    if (--p.fronts_left == 0)
      cost += run_protocol(i, time + cost,
                           [](ex::Protocol& protocol, ex::Output& out) { protocol.no_more_decisions(out); });
    for (const Share& share : shares) {
      true_[share.process] += share.seconds;
      at(time + cost + cluster_.latency, EventKind::kArrival, share.process,
         {.from = i, .send = nullptr, .work = share.seconds});
    }
    p.busy_until = time + cost;
    wake(i, p.busy_until);
  }

  [[nodiscard]] std::vector<double> beliefs(Process i) const {
    const Proc& p = processes_[i];
    if (!p.protocol) return true_;
    std::vector<double> loads(true_.size());
    for (Process j = 0; j < loads.size(); ++j) loads[j] = p.protocol->view().load(j);
    return loads;
  }

  void measure_error(const std::vector<double>& believed) {
    double sum = 0;
    double worst = 0;
    for (Process j = 0; j < believed.size(); ++j) {
      const double error = std::abs(believed[j] - true_[j]);
      sum += error;
      worst = std::max(worst, error);
    }
    outcome_.view_error += sum / static_cast<double>(believed.size());
    outcome_.worst_error += worst;
  }

  void measure_peak(Process i, double seconds, const std::vector<Share>& shares) {
    const Share best = pour(true_, i, seconds, workload_.params.slaves).front();
    const double level = true_[best.process] + best.seconds;
    double peak = 0;
    for (const Share& share : shares) peak = std::max(peak, true_[share.process] + share.seconds);
    outcome_.peak += peak - level;
  }

  const Workload& workload_;
  Cluster cluster_;
  std::vector<Proc> processes_;
  std::vector<double> true_;   // true load of each process, including shares in transit to it
  std::vector<Event> events_;  // a heap, earliest first
  std::uint64_t order_ = 0;
  ex::Output out_;
  Outcome outcome_;
};

}  // namespace

Outcome solve(const Workload& workload, const Cluster& cluster, std::optional<ex::Mechanism> mechanism,
              double threshold) {
  return Solver(workload, cluster, mechanism, threshold).run();
}

}  // namespace bsp::sim::exchange
