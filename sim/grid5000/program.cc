#include "sim/grid5000/program.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace bsp::sim::grid5000 {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity(), kTick = 1e-12;

enum class Phase : std::uint8_t { kComing, kComputing, kExchanging, kAtBarrier, kCalling, kDone };

struct Process {
  Phase phase = Phase::kComing;
  double until = 0;  // kComing: when it computes; kAtBarrier: when process 1's message is there
  double left = 0;   // instructions
  double began = 0, computed = 0, called = 0;
  bool received = false, sent = false;
  std::uint32_t superstep = 0;
  std::array<double, kSites> exchanged{};  // on each site, the last time
  Measured measured{};
};

struct Message {  // to process i from i − 1
  bool offered = false, wanted = false;
  double starts = kNever, left = kBytes;

  [[nodiscard]] bool flows(double now) const { return starts <= now + kTick; }
};

class Run {
 public:
  explicit Run(const Program& program)
      : program_(program),
        deployment_(deployment(program.mapping)),
        on_(deployment_.on),
        rules_(program.heuristic, deployment_.known),
        processes_(on_.size()),
        messages_(on_.size()) {}

  Ran whole() {
    while (std::ranges::any_of(processes_, [](const Process& p) { return p.phase != Phase::kDone; })) step();
    return std::move(ran_);
  }

 private:
  // To the next event.
  void step() {
    pace();
    double next = kNever;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const Process& p = processes_[i];
      if (p.phase == Phase::kComing || p.phase == Phase::kAtBarrier) next = std::min(next, p.until - now_);
      if (p.phase == Phase::kComputing) next = std::min(next, p.left / speed_[i]);
      const Message& m = messages_[i];
      next = std::min(next, m.flows(now_) ? m.left / rate_[i] : m.starts - now_);
    }
    next = std::max(next, 0.0);
    std::vector<std::size_t> computed, arrived;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].phase == Phase::kComputing && (processes_[i].left -= speed_[i] * next) <= 1)
        computed.push_back(i);
      if (messages_[i].flows(now_) && (messages_[i].left -= rate_[i] * next) <= 1e-3) arrived.push_back(i);
    }
    now_ += next;
    for (const std::size_t i : computed) exchange(i);
    for (const std::size_t i : arrived) arrive(i);
    for (std::size_t i = 1; i < processes_.size(); ++i)
      if (processes_[i].phase == Phase::kAtBarrier && processes_[i].until <= now_ + kTick) pass_barrier(i);
    for (Process& p : processes_)
      if (p.phase == Phase::kComing && p.until <= now_ + kTick) compute(p);
  }

  // What each computation and each message gets until the next event.
  void pace() {
    std::map<Machine, double> busy, out, in;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i].phase == Phase::kComputing) ++busy[on_[i]];
      if (!messages_[i].flows(now_)) continue;
      ++out[on_[i - 1]], ++in[on_[i]];
      in[on_[i - 1]] += kWayBack, out[on_[i]] += kWayBack;
    }
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      speed_[i] = kSiteOf[on_[i].site].speed / std::max(1.0, busy[on_[i]]);
      if (messages_[i].flows(now_)) rate_[i] = kBandwidth / std::max(out[on_[i - 1]], in[on_[i]]);
    }
  }

  void compute(Process& p) const {
    p.phase = Phase::kComputing;
    p.left = kInstructions;
    p.began = now_;
  }

  void exchange(std::size_t i) {
    Process& p = processes_[i];
    p.phase = Phase::kExchanging;
    p.computed = now_;
    p.received = i == 0;
    p.sent = i + 1 == processes_.size();
    if (!p.sent) messages_[i + 1].offered = true, start(i + 1);
    if (!p.received) messages_[i].wanted = true, start(i);
  }

  void start(std::size_t i) {
    Message& m = messages_[i];
    if (m.offered && m.wanted) m.starts = now_ + latency(on_[i - 1], on_[i]);
  }

  void arrive(std::size_t i) {
    messages_[i] = {};
    processes_[i].exchanged[on_[i].site] = now_ - processes_[i].computed;
    processes_[i].received = processes_[i - 1].sent = true;
    come_to_barrier(i);
    come_to_barrier(i - 1);
  }

  void come_to_barrier(std::size_t i) {
    Process& p = processes_[i];
    if (p.phase != Phase::kExchanging || !p.received || !p.sent) return;
    p.phase = Phase::kAtBarrier;
    p.until = kNever;
    const Process& first = processes_[0];
    for (std::size_t k = 1; k < processes_.size(); ++k)  // process 1 sends, if it is there
      if (first.phase == Phase::kAtBarrier && processes_[k].phase == Phase::kAtBarrier &&
          processes_[k].superstep == first.superstep && processes_[k].until == kNever)
        processes_[k].until = now_ + latency(on_[0], on_[k]);
  }

  void pass_barrier(std::size_t i) {
    leave(i);
    if (++passed_ + 1 < processes_.size()) return;
    passed_ = 0;
    leave(0);  // all have its message
  }

  void leave(std::size_t i) {
    Process& p = processes_[i];
    p.measured.computing.push_back(p.computed - p.began);
    for (std::size_t s = 0; s < kSites; ++s) p.measured.exchanging[s].push_back(p.exchanged[s]);
    ++p.superstep;
    ran_.seconds = std::max(ran_.seconds, now_);
    if (program_.alpha > 0 && p.superstep % program_.alpha == 0) {
      p.phase = Phase::kCalling;
      p.called = now_;
      if (std::ranges::all_of(processes_, [](const Process& q) { return q.phase == Phase::kCalling; })) call();
    } else {
      go_on(p, now_);
    }
  }

  void go_on(Process& p, double at) {
    p.phase = p.superstep == program_.supersteps ? Phase::kDone : Phase::kComing;
    p.until = at;
    ran_.seconds = std::max(ran_.seconds, at);
  }

  // The managers are on the first machine of each site.
  using Managers = std::array<double, kSites>;  // when each is free, s
  static void tell_each_other(Managers& at) {
    for (std::uint32_t a = 0; a < kSites; ++a)
      for (std::uint32_t b = 0; b < kSites; ++b)
        if (a != b) at[a] = at[b] = std::max(at[a], at[b]) + latency({a, 0}, {b, 0});
  }

  void call() {
    Managers at{};
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::uint32_t s = on_[i].site;
      at[s] = std::max(at[s], processes_[i].called) + latency(on_[i], {s, 0});
    }
    tell_each_other(at);
    const std::uint32_t superstep = processes_[0].superstep;
    std::vector<Measured> measured;
    for (Process& p : processes_) measured.push_back(std::exchange(p.measured, {}));
    std::vector<Machine> to = on_;
    const auto moves = rules_.call(measured, to);
    if (program_.migrates) on_ = to;
    for (const auto& [i, from] : moves)
      if (program_.migrates) ran_.moves.push_back({i, from, to[i], superstep});
    ran_.calls.push_back({superstep, program_.migrates ? static_cast<std::uint32_t>(moves.size()) : 0});
    tell_each_other(at);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::uint32_t s = on_[i].site;
      go_on(processes_[i], at[s] += latency({s, 0}, on_[i]));
    }
  }

  Program program_;
  Deployment deployment_;
  std::vector<Machine> on_;
  Rules rules_;
  std::vector<Process> processes_;
  std::vector<Message> messages_;
  std::array<double, kProcesses> speed_{}, rate_{};
  double now_ = 0;
  std::size_t passed_ = 0;
  Ran ran_;
};

}  // namespace

Ran run(const Program& program) { return Run(program).whole(); }

}  // namespace bsp::sim::grid5000
