#include "tests/unit/migrate/world.h"

#include <algorithm>
#include <format>

namespace bsp::migrate::sim {

using simulated::Process;
using wire::RankPhase;

namespace {

// Milliseconds; a superstep of 3.5 on average.
constexpr simulated::Pace kPace{.superstep = {1, 6},
                                .close = {2, 6},
                                .dump = {10, 60},
                                .stream = {5, 45},
                                .restore = {10, 60},
                                .enter = {1, 12},
                                .tick_ns = 1'000'000};

wire::RankStatus fresh_status(std::uint32_t rank, const Seat& seat) {
  wire::RankStatus status;
  status.version = 1;
  status.rank = rank;
  status.pod = seat.pod;
  status.seat = seat.local;
  status.init_connected = true;
  return status;
}

}  // namespace

World::World(const Scenario& scenario)
    : simulated::Cluster(
          {.ranks = scenario.ranks, .supersteps = scenario.program_supersteps, .pace = kPace, .seed = scenario.seed}),
      s_(scenario) {
  never_migratable = s_.never_migratable;
  messages_come_again = s_.late_copies;
  start_ns = static_cast<std::uint64_t>(time().time_since_epoch().count());
  epoch_ = {.epoch = 3, .pmix_namespace = "uid-e3", .sets = {"slow", "fast"}, .members = {}};
  for (std::uint32_t r = 0; r < s_.ranks; ++r) {
    const std::string name = source_of(r);
    epoch_.members.push_back({r, name, "uid-" + name, name + ":7600", 0, r % s_.seats});
  }
  const auto prepared = std::make_shared<const wire::EpochPlan>(epoch_);
  for (std::uint32_t r = 0; r < s_.ranks; ++r) {
    const Seat seat = seat_of(epoch_.members[r]);
    Pod& p = pods_[seat];
    p.name = seat.pod;
    p.local = seat.local;
    p.seats = std::min(s_.seats, s_.ranks - (r - seat.local));
    p.uid = "uid-" + seat.pod;
    p.rank = r;
    p.forgetful = s_.forgetful;
    p.heeds_tokens = !s_.old_sidecars;
    p.process = Process::kRunning;
    p.prepared[3] = prepared;
    p.status = fresh_status(r, seat);
    p.status.phase = RankPhase::kRunning;
    p.status.mpi_initialized = true;
    p.status.epoch = p.status.prepared_epoch = p.status.admitted_epoch = 3;
    p.status.memory_bytes = 10'000'000;
  }
  wave_.number = 1;
  wave_.base_epoch = 3;
  wave_.next_epoch = 4;
  wave_.rollback_epoch = 5;
  wave_.times.push_back({Phase::kPreparing, time()});
  if (s_.checkpoint) wave_.checkpoint = Checkpoint{.set = 7, .attempt = 0};
  for (std::uint32_t m = 0; m < s_.moves; ++m)
    wave_.moves.push_back({.migration = std::format("job-w1-r{}", m),
                           .rank = m,
                           .source_pod = source_of(m),
                           .source_uid = "uid-" + source_of(m),
                           .source_address = source_of(m) + ":7600",
                           .source_set = 0,
                           .target_pod = std::format("job-r{}-g1", m - m % s_.seats),
                           .target_uid = "",
                           .target_address = "",
                           .target_set = 1,
                           .target_node = "fast-0",
                           .source_local = m % s_.seats,
                           .target_local = m % s_.seats});
}

std::string World::source_of(std::uint32_t rank) const { return std::format("job-r{}-g0", rank - rank % s_.seats); }

void World::for_each_pod(const std::function<void(simulated::Pod&)>& f) {
  for (auto& [seat, p] : pods_) f(p);
}

World::Pod* World::pod(const Seat& seat) {
  auto it = pods_.find(seat);
  return it == pods_.end() ? nullptr : &it->second;
}

std::vector<World::Pod*> World::seats_of(const std::string& name) {
  std::vector<Pod*> seats;
  for (auto& [seat, p] : pods_)
    if (seat.pod == name) seats.push_back(&p);
  return seats;
}

World::Pod* World::running(std::uint32_t rank) {
  for (auto& [seat, p] : pods_)
    if (p.rank == rank && p.process == Process::kRunning) return &p;
  return nullptr;
}

bool World::all_stopped() {
  return epoch_.epoch == wave_.base_epoch && std::ranges::all_of(epoch_.members, [&](const wire::Member& m) {
           const Pod* p = pod(seat_of(m));
           return p && p->process == Process::kStopped;
         });
}

Outcome World::run() {
  constexpr int kEnd = 240'000;
  std::uint64_t superstep_at_end = 0;
  while (tick_ < kEnd && violation.empty()) {
    tick();
    if (migrate::is_finished(wave_) && ended_at_ < 0 && operator_up_at_ <= tick_) {
      ended_at_ = tick_;
      superstep_at_end = superstep_;
    }
    const int rest = s_.late_copies ? 4000 : 600;  // after the last of them
    if (ended_at_ >= 0 && (wave_.phase == Phase::kFailed || tick_ > ended_at_ + rest)) break;
  }
  check_end(superstep_at_end);
  return {wave_,
          struck_,
          others_were_admitted_,
          (ended_at_ - struck_at_) / 1000.0,
          stores_while_stopped_,
          storage.size(),
          asked_while_stopped_,
          violation,
          trace};
}

// After the wave the job goes on, and nothing that the wave made or replaced is left.
void World::check_end(std::uint64_t superstep_at_end) {
  for (const auto& [key, image] : storage)
    if (image.epoch != wave_.base_epoch || image.superstep != storage.begin()->second.superstep)
      violate("the images of a set are of two gates");
  if (ended_at_ < 0) return violate("the wave never ended: " + std::string(crds::to_string(wave_.phase)));
  if (wave_.phase == Phase::kFailed) return;
  const bool finished = superstep_ >= s_.program_supersteps;
  const bool lost = struck_ && struck_at_ >= ended_at_;
  if (!finished && !lost && superstep_ < superstep_at_end + 3) violate("the job does not go on");
  for (const Move& move : wave_.moves) {
    const Seat spare = wave_.phase == Phase::kSucceeded ? move.source() : move.target();
    const Pod* left = pod(spare);
    // A pod that other ranks stay in stays.
    const bool stays = std::ranges::contains(epoch_.members, spare.pod, &wire::Member::pod);
    const bool is_free = left && (left->process == Process::kNone || left->process == Process::kEnded);
    if (left && !(stays && is_free) && !lost) violate(name_of(spare) + " was left behind");
  }
}

void World::tick() {
  ++tick_;
  remove_pods();
  advance();
  deliver();
  operate();
  strike();
}

void World::remove_pods() {
  std::erase_if(pods_, [&](const auto& entry) { return entry.second.gone_at >= 0 && tick_ >= entry.second.gone_at; });
}

// --- Messages ------------------------------------------------------------------------------------------------
void World::deliver() {
  auto due = std::ranges::partition(messages_, [&](const Message& m) { return m.at > tick_; });
  std::vector<Message> now(due.begin(), due.end());
  messages_.erase(due.begin(), due.end());
  std::ranges::stable_sort(now, {}, &Message::at);
  for (const Message& m : now) execute(m);
}

void World::create_target(const Action& action) {
  const std::string& name = action.seat.pod;
  if (!seats_of(name).empty()) return;
  const std::string uid = std::format("uid-{}-{}", name, ++uids_);
  const int up_at = tick_ + random(50, 300);
  const auto seats = std::ranges::count(wave_.moves, name, &Move::target_pod);
  for (const Move& move : wave_.moves) {
    if (move.target_pod != name) continue;
    Pod& p = pods_[move.target()];
    p.name = name;
    p.local = move.target_local;
    p.seats = static_cast<std::uint32_t>(seats);
    p.uid = uid;
    p.rank = move.rank;
    p.target = true;
    p.forgetful = s_.forgetful;
    p.heeds_tokens = !s_.old_sidecars;
    p.up_at = up_at;
    p.status = fresh_status(p.rank, p.seat());
  }
}

void World::delete_pod(const std::string& name) {
  note("delete " + name);
  int gone_at = -1;  // all of it at once
  for (Pod* p : seats_of(name)) {
    const bool is_replaced = p->target && wave_.phase == Phase::kRollingBack;  // by its source, once it has ended
    if (p->computes() && !is_replaced) violate("a computing rank is deleted: " + name_of(p->seat()));
    if (p->gone_at >= 0) continue;
    if (gone_at < 0) gone_at = tick_ + random(5, 100);
    p->gone_at = gone_at;
  }
}

void World::execute(const Message& m) {
  const Action& a = m.action;
  if (a.kind == ActionKind::kCreateTargetPod) return create_target(a);
  if (a.kind == ActionKind::kDeletePod) return delete_pod(a.seat.pod);
  Pod* p = pod(a.seat);
  if (!p) return;
  // A sidecar goes on while its pod is being deleted.
  if (tick_ < p->up_at || tick_ < p->silent_until || p->init_died) return;
  if (a.kind == ActionKind::kSend || a.kind == ActionKind::kRestore) asked_while_stopped_ += all_stopped();
  of_the_dead = m.operator_life != operator_life_;
  const auto answer = ask(*p, to_string(a.kind), a.encoded());
  others_were_admitted_ |= !p->target && p->status.admitted_epoch == wave_.next_epoch;
  if (m.operator_life != operator_life_) return;
  SidecarView& known = known_[a.seat];
  note_status(known, p->status, steady());
  note_answer(known, a, answer);
}

// --- The operator ----------------------------------------------------------------------------------------------
View World::view() {
  View v;
  v.now = steady();
  contact_.note(&wave_, v.now);
  v.since = contact_.since();
  if (s_.cancelled_in && wave_.entered(*s_.cancelled_in) != Time{}) v.cancelled = "it is no longer wanted";
  v.epoch = epoch_;
  v.superstep_seconds = 0.0035;
  v.round_trip_seconds = 0.004;
  for (auto& [seat, p] : pods_) {
    SidecarView& known = known_[seat];
    if (tick_ >= p.up_at && tick_ >= p.silent_until) {
      // Statuses arrive a little late: now and then the one before is still shown.
      if (!known.status || random(0, 3) != 0) note_status(known, p.status, steady());
      known.unreachable_since = SteadyTime{};
    } else if (known.unreachable_since == SteadyTime{}) {
      known.unreachable_since = steady();
    }
    SeatView& out = v.seats[seat];
    static_cast<SidecarView&>(out) = known;
    out.exists = true;
    out.deleting = p.gone_at >= 0;
    out.ended = p.init_died;
    out.message = p.init_died ? "bsp-init was killed" : "";
    out.uid = p.uid;
    out.address = seat.pod + ":7600";
  }
  return v;
}

void World::operate() {
  if (tick_ < operator_up_at_) return;
  for (int again = 0; again < 10; ++again) {
    const Step step = migrate::step(wave_, view(), time(), s_.limits);
    if (!step.change()) return send(step.work());
    store(*step.change());
  }
}

void World::check_transitions(const Wave& next) {
  Phase from = wave_.phase;  // several may be passed in one write
  for (std::size_t i = wave_.times.size(); i < next.times.size(); ++i) {
    if (!is_valid_transition(from, next.times[i].phase)) violate("transition not in the drawing");
    from = next.times[i].phase;
  }
  if (from != next.phase) violate("a phase without a time");
  if (next.phase != Phase::kSucceeded || struck_) return;
  for (const Move& m : next.moves)
    if (Pod* t = pod(m.target()); !t || t->status.epoch != wave_.next_epoch)
      violate("Succeeded without a running target");
}

// Compare-and-swap on the job's status: an operator that is gone writes nothing.
void World::store(const WaveChange& change) {
  if (change.wave.phase != wave_.phase) {
    phase_at_ = tick_;
    note(std::format("{} -> {} {} {}", crds::to_string(wave_.phase), crds::to_string(change.wave.phase),
                     change.wave.reason, change.wave.message));
    check_transitions(change.wave);
  }
  stores_while_stopped_ += all_stopped();
  wave_ = wave_from_json(to_json(change.wave)).value();
  if (!change.commit) return;
  note(std::format("commit epoch {}", change.commit->epoch));
  if (change.commit->epoch <= epoch_.epoch) violate("an epoch number was used twice");
  epoch_ = *change.commit;
}

void World::send(const std::vector<Action>& actions) {
  for (const Action& a : actions) {
    auto [it, fresh] = sent_at_.try_emplace({a.kind, a.seat, a.number}, tick_);
    if (!fresh && tick_ < it->second + 40) continue;
    it->second = tick_;
    messages_.push_back({.at = tick_ + random(1, 8), .operator_life = operator_life_, .action = a});
    const bool is_verb = a.kind != ActionKind::kCreateTargetPod && a.kind != ActionKind::kDeletePod;
    if (s_.late_copies && is_verb)  // nobody hears its answer any more
      messages_.push_back({.at = tick_ + random(10, 3000), .operator_life = -1, .action = a});
  }
}

}  // namespace bsp::migrate::sim
