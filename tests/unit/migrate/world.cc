#include "tests/unit/migrate/world.h"

#include <algorithm>
#include <format>

namespace bsp::migrate::sim {

using wire::RankPhase;
using wire::TransferPhase;

std::string_view to_string(Victim victim) {
  constexpr std::string_view names[] = {"nobody",         "program",         "init",
                                        "criu-dump",      "criu-restore",    "source-sidecar",
                                        "target-sidecar", "staying-sidecar", "source-pod",
                                        "target-pod",     "staying-program", "staying-pod",
                                        "operator",       "operator-away",   "api-server-pause",
                                        "clock-forward",  "clock-back"};
  return names[static_cast<int>(victim)];
}

namespace {
wire::RankStatus fresh_status(std::uint32_t rank, const std::string& pod, RankPhase phase) {
  wire::RankStatus status;
  status.version = 1;
  status.rank = rank;
  status.pod = pod;
  status.phase = phase;
  status.init_connected = true;
  return status;
}
}  // namespace

World::World(const Scenario& scenario) : s_(scenario), random_(scenario.seed) {
  epoch_ = {.epoch = 3, .pmix_namespace = "uid-e3", .sets = {"slow", "fast"}, .members = {}};
  for (std::uint32_t r = 0; r < s_.ranks; ++r) {
    const std::string name = std::format("job-r{}-g0", r);
    epoch_.members.push_back({r, name, "uid-" + name, name + ":7600", 0});
    Pod& p = pods_[name];
    p.name = name;
    p.uid = "uid-" + name;
    p.rank = r;
    p.process = Process::kRunning;
    p.status = fresh_status(r, name, RankPhase::kRunning);
    p.status.epoch = p.status.prepared_epoch = 3;
    p.status.memory_bytes = 10'000'000;
  }
  wave_.number = 1;
  wave_.base_epoch = 3;
  wave_.next_epoch = 4;
  wave_.rollback_epoch = 5;
  wave_.times.push_back({Phase::kPreparing, time()});
  for (std::uint32_t m = 0; m < s_.moves; ++m)
    wave_.moves.push_back({.migration = std::format("job-w1-r{}", m),
                           .rank = m,
                           .source_pod = std::format("job-r{}-g0", m),
                           .source_uid = std::format("uid-job-r{}-g0", m),
                           .source_address = std::format("job-r{}-g0:7600", m),
                           .source_set = 0,
                           .target_pod = std::format("job-r{}-g1", m),
                           .target_uid = "",
                           .target_address = "",
                           .target_set = 1,
                           .target_node = "fast-0"});
  last_epoch_opened_.assign(s_.ranks, 3);
}

World::Pod* World::pod(const std::string& name) {
  auto it = pods_.find(name);
  return it == pods_.end() || !it->second.exists ? nullptr : &it->second;
}

void World::note(const std::string& what) { trace_ += std::format("{:6} {}\n", now_, what); }
void World::violate(const std::string& what) {
  if (violation_.empty()) violation_ = std::format("at {} ms: {}", now_, what);
  note("VIOLATION " + what);
}

Outcome World::run() {
  constexpr int kEnd = 240'000;
  std::uint64_t superstep_at_end = 0;
  while (now_ < kEnd) {
    tick();
    if (migrate::is_finished(wave_) && ended_at_ < 0 && operator_up_at_ <= now_) {
      ended_at_ = now_;
      superstep_at_end = superstep_;
    }
    // Liveness: after the wave the job goes on, and nothing that the wave made or replaced is left.
    if (ended_at_ >= 0 && (wave_.phase == Phase::kFailed || now_ > ended_at_ + 600)) break;
    if (!violation_.empty()) break;
  }
  if (ended_at_ < 0)
    violate("the wave never ended: " + std::string(crds::to_string(wave_.phase)));
  else if (wave_.phase != Phase::kFailed) {
    const bool finished = superstep_ >= s_.program_supersteps;
    const bool lost = struck_ && struck_at_ >= ended_at_;
    if (!finished && !lost && superstep_ < superstep_at_end + 3) violate("the job does not go on");
    for (const Move& move : wave_.moves) {
      const std::string& spare = wave_.phase == Phase::kSucceeded ? move.source_pod : move.target_pod;
      if (pod(spare)) violate(spare + " was left behind");
    }
  }
  return {wave_,
          struck_,
          others_were_admitted_,
          (ended_at_ - struck_at_) / 1000.0,
          stores_while_stopped_,
          asked_while_stopped_,
          violation_,
          trace_};
}

void World::tick() {
  ++now_;
  programs();
  pods();
  deliver();
  operate();
  strike();
  check_invariants();
}

World::Pod* World::running(std::uint32_t rank) {
  for (auto& [name, p] : pods_)
    if (p.exists && p.rank == rank && p.process == Process::kRunning) return &p;
  return nullptr;
}

bool World::all_stopped() {
  return epoch_.epoch == wave_.base_epoch && std::ranges::all_of(epoch_.members, [&](const wire::Member& m) {
           const Pod* p = pod(m.pod);
           return p && p->process == Process::kStopped;
         });
}

// All ranks pass the edges together, as a barrier makes them; what the gate words say is read there.
void World::programs() {
  if (now_ < next_edge_at_) return;
  std::vector<Pod*> ranks;
  for (std::uint32_t r = 0; r < s_.ranks; ++r) {
    Pod* p = running(r);
    if (!p || p->status.epoch != last_epoch_opened_[r] || p->status.phase == RankPhase::kClosing ||
        p->status.phase == RankPhase::kOpening)
      return;  // the barrier does not complete
    ranks.push_back(p);
  }
  const std::uint64_t open_epoch = ranks[0]->status.epoch;
  for (Pod* p : ranks)
    if (p->status.epoch != open_epoch) return;
  if (superstep_ >= s_.program_supersteps) {
    for (Pod* p : ranks) {
      p->process = Process::kFinished;
      p->status.phase = RankPhase::kExited;
      p->status.exit_code = 0;
      ++p->status.version;
    }
    return;
  }
  // The verdict on an armed gate is awaited at the edge; votes are taken when all are there.
  std::size_t voters = 0, held = 0;
  bool drop = false;
  for (Pod* p : ranks) {
    const bool at = p->status.gate_superstep != 0 && superstep_ >= p->status.gate_superstep &&
                    p->gate_dropped != p->status.gate_superstep;
    if (at && p->status.gate_committed)
      ++voters, drop |= p->dropping;
    else if (at)
      ++held, p->status.phase = RankPhase::kAtGate;
    else if (p->status.phase == RankPhase::kAtGate)
      p->status.phase = RankPhase::kRunning;
  }
  if (held) return;
  if (voters && voters < ranks.size()) return violate("only some ranks vote at the gate");
  if (voters && drop) {
    for (Pod* p : ranks) {
      p->gate_dropped = p->status.gate_superstep;
      p->status.gate_superstep = 0;
      p->status.gate_committed = p->dropping = false;
      p->status.phase = RankPhase::kRunning;
      ++p->status.version;
    }
  } else if (voters && !s_.never_migratable) {
    for (Pod* p : ranks) {
      p->status.phase = RankPhase::kClosing;
      p->status.gate_reached_ns = stamp();
      ++p->status.version;
      p->stop_at = now_ + random(2, 6);
    }
    return;
  }
  ++superstep_;
  for (Pod* p : ranks) p->status.completed = superstep_;
  next_edge_at_ = now_ + random(1, 6);
}

void World::pods() {
  for (auto& [name, p] : pods_) {
    if (!p.exists) continue;
    if (p.reaped_at >= 0 && now_ >= p.reaped_at) {
      p.exists = false;
      p.process = Process::kDead;
      continue;
    }
    if (p.stop_at >= 0 && now_ >= p.stop_at && p.process == Process::kRunning) {
      p.stop_at = -1;
      p.process = Process::kStopped;
      p.status.phase = RankPhase::kStopped;
      const std::string order = std::exchange(p.order, "");
      if (!order.empty() && p.up_at <= now_ && p.status.gate_committed && !p.dropping) {
        p.status.transfer = {};
        p.status.transfer.migration = order;
        p.status.transfer.phase = TransferPhase::kDumping;
        p.transfer_at = now_ + random(10, 60);
      }
      p.status.gate_superstep = 0;
      p.status.gate_committed = p.dropping = false;
      p.status.stopped_ns = stamp();
      ++p.status.version;
    }
    if (p.transfer_at >= 0 && now_ >= p.transfer_at) {
      p.transfer_at = -1;
      auto& t = p.status.transfer;
      if (t.phase == TransferPhase::kDumping) {
        auto to = std::ranges::find(wave_.moves, t.migration, &Move::migration);
        Pod* target = to == wave_.moves.end() ? nullptr : pod(to->target_pod);
        const bool ok = !p.killed_criu && p.process == Process::kStopped && target && target->up_at <= now_ &&
                        target->status.transfer.migration == t.migration &&
                        target->status.transfer.phase == TransferPhase::kReceiving;
        if (ok && t.dump_ns == 0) {
          t.dump_ns = 1;  // criu has ended, the rest of its stream is under way
          p.transfer_at = now_ + random(5, 45);
        } else if (ok) {
          t.phase = TransferPhase::kSent;
          target->status.transfer.phase = TransferPhase::kReceived;
          if (target->restores) {
            target->status.transfer.phase = TransferPhase::kRestoring;
            target->transfer_at = now_ + random(10, 60);
          }
          ++target->status.version;
        } else {
          t.phase = TransferPhase::kFailed;
          t.error = "the stream broke";
        }
      } else if (t.phase == TransferPhase::kRestoring) {
        if (p.killed_criu) {
          t.phase = TransferPhase::kFailed;
          t.error = "criu was killed";
        } else {
          t.phase = TransferPhase::kRestored;
          p.process = Process::kRestored;
          p.status.phase = RankPhase::kStopped;
        }
      }
      ++p.status.version;
    }
  }
  // An epoch opens when all members of its plan ask for it.
  std::vector<Pod*> opening;
  for (std::uint32_t r = 0; r < s_.ranks; ++r)
    for (auto& [name, p] : pods_)
      if (p.exists && p.rank == r && p.opening && p.process == Process::kRunning) opening.push_back(&p);
  if (opening.size() != s_.ranks) return;
  for (Pod* p : opening)
    if (p->opening != opening[0]->opening) return;
  for (Pod* p : opening) {
    p->status.epoch = std::exchange(p->opening, 0);
    p->status.phase = RankPhase::kRunning;
    p->status.first_compute_ns = stamp();
    ++p->status.version;
    last_epoch_opened_[p->rank] = p->status.epoch;
  }
}

void World::deliver() {
  auto due = std::ranges::partition(messages_, [&](const Message& m) { return m.at > now_; });
  std::vector<Message> now(due.begin(), due.end());
  messages_.erase(due.begin(), due.end());
  std::ranges::stable_sort(now, {}, &Message::at);
  for (const Message& m : now) execute(m);
}

void World::execute(const Message& m) {
  const Action& a = m.action;
  if (a.kind == ActionKind::kCreateTargetPod) {
    if (pods_.contains(a.pod)) return;
    Pod& p = pods_[a.pod];
    p.name = a.pod;
    p.uid = "uid-" + a.pod;
    p.rank = wave_.moves[*a.move].rank;
    p.target = true;
    p.up_at = now_ + random(50, 300);
    p.status = fresh_status(p.rank, a.pod, RankPhase::kWaiting);
    return;
  }
  Pod* p = pod(a.pod);
  if (!p) return;
  if (a.kind == ActionKind::kDeletePod) {
    note("delete " + a.pod);
    const bool is_replaced = p->target && wave_.phase == Phase::kRollingBack;  // by its source, once it has ended
    if (p->process == Process::kRunning && !is_replaced) violate("a computing rank is deleted: " + a.pod);
    if (p->reaped_at < 0) p->reaped_at = now_ + random(5, 100);
    return;
  }
  if (p->up_at > now_ || !p->init) return;  // no answer
  auto& st = p->status;
  Known* known = m.operator_life == operator_life_ ? &known_[a.pod] : nullptr;
  auto done = [&] {
    if (known) known->done.insert({a.kind, a.number});
  };
  if (a.kind == ActionKind::kSend || a.kind == ActionKind::kRestore) asked_while_stopped_ += all_stopped();
  switch (a.kind) {
    case ActionKind::kCreateTargetPod:
    case ActionKind::kDeletePod:
      break;
    case ActionKind::kPrepareEpoch:
      p->prepared[m.plan.epoch] = m.plan.members[p->rank].pod;
      p->highest_prepared = std::max(p->highest_prepared, m.plan.epoch);
      st.prepared_epoch = std::max(st.prepared_epoch, m.plan.epoch);
      break;
    case ActionKind::kOpenEpoch:
      if (!p->prepared.contains(a.number) || p->prepared[a.number] != p->name || a.number <= st.epoch ||
          p->opening == a.number || a.number < p->highest_prepared)
        break;
      if (p->process != Process::kStopped && p->process != Process::kRestored) break;
      if (a.number != epoch_.epoch) violate(std::format("epoch {} opened, {} is committed", a.number, epoch_.epoch));
      note(std::format("{} continues in epoch {}", a.pod, a.number));
      p->process = Process::kRunning;
      p->opening = st.admitted_epoch = a.number;
      others_were_admitted_ |= !p->target && a.number == wave_.next_epoch;
      st.phase = RankPhase::kOpening;
      break;
    case ActionKind::kReceive:
      if (st.transfer.migration != m.migration) {
        st.transfer = {};
        st.transfer.migration = m.migration;
        st.transfer.phase = TransferPhase::kReceiving;
        p->restores = !s_.forgetful;
      }
      break;
    case ActionKind::kArmGate: {
      if (st.gate_committed && st.gate_superstep != a.number) violate("armed over a committed gate");
      if (!st.gate_committed) st.gate_superstep = a.number;
      const bool late = st.completed >= a.number;
      if (known) known->armed = ArmAnswer{a.number, st.completed, late && !st.gate_committed};
      break;
    }
    case ActionKind::kCommitGate:
      if (p->gate_dropped == a.number || st.phase == RankPhase::kClosing || st.phase == RankPhase::kStopped) {
        done();
        break;
      }
      if (st.gate_superstep != a.number && st.completed >= a.number) break;  // Conflict
      st.gate_superstep = a.number;
      st.gate_committed = true;
      p->order = a.move && !s_.forgetful ? m.migration : "";
      done();
      break;
    case ActionKind::kCancelGate:
      if (st.gate_superstep == a.number && st.gate_committed)
        p->dropping = true;
      else if (st.gate_superstep == a.number)
        st.gate_superstep = 0;
      done();
      break;
    case ActionKind::kSend:
      if (p->process == Process::kDead) break;  // refused
      if (p->process != Process::kStopped) return violate("send of a rank that is not stopped");
      if (st.transfer.migration == m.migration) break;
      st.transfer = {};
      st.transfer.migration = m.migration;
      st.transfer.phase = TransferPhase::kDumping;
      p->transfer_at = now_ + random(10, 60);
      break;
    case ActionKind::kRestore:
      if (st.transfer.migration != m.migration || st.transfer.phase != TransferPhase::kReceived) break;
      st.transfer.phase = TransferPhase::kRestoring;
      p->transfer_at = now_ + random(10, 60);
      break;
    case ActionKind::kDiscard:
      if (p->target && p->process == Process::kRunning) {
        if (epoch_.epoch != wave_.next_epoch) violate("a computing copy was discarded");
        break;  // refused: it was let into the epoch that was committed
      }
      st.transfer = {};
      p->transfer_at = -1;
      if (p->target) {
        p->process = Process::kNone;
        st.phase = RankPhase::kWaiting;
      }
      break;
  }
  ++st.version;
  if (known) known->status = st;
}

View World::view() {
  View v;
  v.now = steady();
  contact_.look(&wave_, v.now);
  v.since = contact_.since();
  if (s_.cancelled_in && wave_.entered(*s_.cancelled_in) != Time{}) v.cancelled = "nobody wants it";
  v.epoch = epoch_;
  v.superstep_seconds = 0.0035;
  v.round_trip_seconds = 0.004;
  for (auto& [name, p] : pods_) {
    if (!p.exists) continue;
    Known& k = known_[name];
    const bool answers = p.up_at <= now_ && (p.init || p.status.phase == RankPhase::kExited);
    if (p.up_at <= now_) {
      // Statuses arrive a little late: now and then the one before is still shown.
      if (!k.status || random(0, 3) != 0) {
        if (!k.status || k.status->phase != p.status.phase) k.phase_since = steady();
        k.status = p.status;
      }
      k.unreachable_since = SteadyTime{};
    } else if (k.unreachable_since == SteadyTime{}) {
      k.unreachable_since = steady();
    }
    (void)answers;
    PodView& out = v.pods[name];
    out.exists = true;
    out.deleting = p.reaped_at >= 0;
    out.ended = !p.init;
    out.message = p.init ? "" : "bsp-init was killed";
    out.uid = p.uid;
    out.address = name + ":7600";
    out.status = k.status;
    out.phase_since = k.phase_since;
    out.unreachable_since = k.unreachable_since;
    out.completed = k.status ? k.status->completed : 0;
    out.armed = k.armed;
    out.done = k.done;
  }
  return v;
}

void World::operate() {
  if (now_ < operator_up_at_) return;
  for (int again = 0; again < 10; ++again) {
    const Step result = migrate::step(wave_, view(), time(), s_.limits);
    if (const WaveChange* const change = result.change()) {
      if (change->wave.phase != wave_.phase) {
        phase_at_ = now_;
        note(std::format("{} -> {} {} {}", crds::to_string(wave_.phase), crds::to_string(change->wave.phase),
                         change->wave.reason, change->wave.message));
        Phase from = wave_.phase;  // several may be passed in one write
        for (std::size_t i = wave_.times.size(); i < change->wave.times.size(); ++i) {
          if (!is_valid_transition(from, change->wave.times[i].phase)) violate("transition not in the drawing");
          from = change->wave.times[i].phase;
        }
        if (from != change->wave.phase) violate("a phase without a time");
        if (change->wave.phase == Phase::kSucceeded)
          for (const Move& m : change->wave.moves)
            if (Pod* t = pod(m.target_pod); !t || t->status.epoch != wave_.next_epoch)
              if (!struck_) violate("Succeeded without a running target");
      }
      stores_while_stopped_ += all_stopped();
      // Compare-and-swap on the job's status: an operator that is gone writes nothing.
      wave_ = wave_from_json(to_json(change->wave)).value();
      if (change->commit) {
        note(std::format("commit epoch {}", change->commit->epoch));
        if (change->commit->epoch <= epoch_.epoch) violate("an epoch number was used twice");
        epoch_ = *change->commit;
      }
      continue;
    }
    for (const Action& a : result.work()) {
      auto [it, fresh] = sent_at_.try_emplace({a.kind, a.pod, a.number}, now_);
      if (!fresh && now_ < it->second + 40) continue;
      it->second = now_;
      Message m{.at = now_ + random(1, 8),
                .operator_life = operator_life_,
                .action = a,
                .plan = {},
                .migration = "",
                .to_pod = ""};
      if (a.kind == ActionKind::kPrepareEpoch) {
        if (a.number == epoch_.epoch)
          m.plan = epoch_;
        else
          m.plan = a.number == wave_.next_epoch ? next_plan(wave_, epoch_) : rollback_plan(wave_, epoch_);
      }
      if (a.move) m.migration = wave_.moves[*a.move].migration;
      messages_.push_back(std::move(m));
    }
    break;
  }
}

void World::end_operator(int away_ms) {
  ++operator_life_;
  operator_up_at_ = now_ + away_ms;
  known_.clear();
  sent_at_.clear();
  contact_ = {};
  // What it had sent arrives, late or at once, or is lost with its connections.
  std::erase_if(messages_, [&](const Message&) { return random(0, 1) == 0; });
  for (Message& m : messages_)
    if (random(0, 1) == 0) m.at += random(1, 3000);
}

void World::strike() {
  if (struck_ || s_.victim == Victim::kNobody || wave_.phase != s_.phase || now_ < phase_at_ + s_.delay_ms) return;
  const Move& move = wave_.moves[0];
  Pod* source = pod(move.source_pod);
  Pod* target = pod(move.target_pod);
  auto restart_sidecar = [&](Pod* p) {
    if (!p) return;
    p->up_at = now_ + random(50, 2000);
    p->prepared.clear();
    p->order.clear();
    p->status.prepared_epoch = 0;
    auto& t = p->status.transfer;
    if (t.phase == TransferPhase::kRestored) return;  // bsp-init tells it of the copy
    t = {};
    p->transfer_at = -1;
  };
  auto end_pod = [&](Pod* p, bool object_too) {
    if (!p) return;
    p->init = false;
    p->process = p->process == Process::kNone ? Process::kNone : Process::kDead;
    p->opening = 0;
    if (object_too) p->exists = false;
  };
  struck_ = true;
  struck_at_ = now_;
  note(std::format("STRIKE {}", to_string(s_.victim)));
  Pod* staying = pod(epoch_.members.back().pod);
  Pod* rank0 = running(0) ? running(0) : source;
  switch (s_.victim) {
    case Victim::kNobody:
      break;
    case Victim::kProgram:
      if (rank0) {
        rank0->process = Process::kDead;
        rank0->opening = 0;
        rank0->status.phase = RankPhase::kExited;
        rank0->status.exit_signal = 9;
        ++rank0->status.version;
      }
      break;
    case Victim::kInit:
      end_pod(rank0, false);
      break;
    case Victim::kCriuDump:
      if (source) source->killed_criu = true;
      break;
    case Victim::kCriuRestore:
      if (target) target->killed_criu = true;
      break;
    case Victim::kSourceSidecar:
      restart_sidecar(source);
      break;
    case Victim::kTargetSidecar:
      restart_sidecar(target);
      break;
    case Victim::kStayingSidecar:
      restart_sidecar(pod(epoch_.members.back().pod));
      break;
    case Victim::kSourcePod:
      end_pod(source, true);
      break;
    case Victim::kTargetPod:
      end_pod(target, true);
      break;
    case Victim::kStayingProgram:
      if (staying && staying->process != Process::kDead) {
        staying->process = Process::kDead;
        staying->opening = 0;
        staying->status.phase = RankPhase::kExited;
        staying->status.exit_signal = 9;
        ++staying->status.version;
      }
      break;
    case Victim::kStayingPod:
      end_pod(staying, true);
      break;
    case Victim::kOperator:
      end_operator(random(50, 500));
      break;
    case Victim::kOperatorAway:
      end_operator(60'000);
      clock_is_off_ = std::chrono::minutes(random(0, 1) == 0 ? -5 : 5);
      break;
    case Victim::kApiServerPause:
      operator_up_at_ = now_ + 45'000;
      break;
    case Victim::kClockForward:
      clock_is_off_ = std::chrono::hours(1);
      break;
    case Victim::kClockBack:
      clock_is_off_ = -std::chrono::hours(1);
      break;
  }
  if (s_.operator_dies_with_it) end_operator(random(50, 500));
}

void World::check_invariants() {
  for (std::uint32_t r = 0; r < s_.ranks; ++r) {
    int computing = 0;
    for (auto& [name, p] : pods_)
      if (p.rank == r && p.process == Process::kRunning) ++computing;
    if (computing > 1) violate(std::format("rank {} computes twice", r));
  }
}

}  // namespace bsp::migrate::sim
