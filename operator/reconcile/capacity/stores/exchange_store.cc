#include "operator/reconcile/capacity/stores/exchange_store.h"

#include <cmath>
#include <format>
#include <utility>

#include "base/core/log.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;

// How long a worker waits for the other operators; the job is reconciled again soon.
constexpr auto kTurnPatience = 1s;
constexpr auto kFresh = 1s;

// A load's name goes on with the node's or the Set's; one of kExtended with the resource's before that.
constexpr std::string_view kCpu = "cpu ", kMemory = "memory ", kPods = "pods ", kMoves = "moves ",
                           kExtended = "extended ";

void add_to(std::map<std::string, double>& loads, const std::string& node, const Resources& asked) {
  loads[std::string(kCpu) + node] += static_cast<double>(asked.cpu);
  loads[std::string(kMemory) + node] += static_cast<double>(asked.memory);
  loads[std::string(kPods) + node] += static_cast<double>(asked.pods);
  for (const auto& [name, some] : asked.extended)
    loads[std::format("{}{} {}", kExtended, name, node)] += static_cast<double>(some);
}

// Adds the load of that name to `reservations`.
void read_load(const std::string& name, double load, Reservations& reservations) {
  const std::int64_t amount = std::llround(load);
  if (amount == 0) return;
  const std::size_t space = name.find(' ') + 1;
  const std::string_view what = std::string_view(name).substr(0, space);
  const std::string where = name.substr(space);
  if (what == kCpu) reservations.reported[where].cpu += amount;
  if (what == kMemory) reservations.reported[where].memory += amount;
  if (what == kPods) reservations.reported[where].pods += amount;
  if (const std::size_t end = where.find(' '); what == kExtended && end != std::string::npos)
    reservations.reported[where.substr(end + 1)].extended[where.substr(0, end)] += amount;
  if (what == kMoves && amount > 0) {
    reservations.reported_moves.into[where] += static_cast<std::uint32_t>(amount);
    reservations.reported_moves.all += static_cast<std::uint32_t>(amount);
  }
}

}  // namespace

ExchangeReservations::ExchangeReservations(ExchangePlace place, const NodeUsage& usage)
    : place_(std::move(place)),
      group_(*place_.group),
      usage_(usage),
      reports_plans_(group_.options().mechanism != exchange::Mechanism::kNaive) {}

// Only once all pods have been seen, since a joining member reports what it holds.
void ExchangeReservations::begin() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(joined_, true)) return;
  for (const auto& [name, load] : reported_) number_of(name);
  std::vector<double> own(group_.resources().size());
  for (const auto& [name, load] : reported_) own[number_of(name)] = load;
  if (auto joined = group_.join(place_.addresses, std::move(own)); !joined)
    log_error("failed to begin the exchange of loads", {{"error", joined.error().message}});
}

Reservations ExchangeReservations::read(Time /*now*/) {
  const std::lock_guard lock(mutex_);
  if (!turn_) {
    const auto clock = std::chrono::steady_clock::now();
    if (group_.options().mechanism == exchange::Mechanism::kSnapshot && clock - refreshed_ > kFresh) {
      refreshed_ = clock;
      group_.refresh();
    }
    return reservations(group_.view());
  }
  Reservations seen = turn_->seen;
  seen.of_job = own_;  // of our other jobs; one may have ended since
  return seen;
}

Reservations ExchangeReservations::reservations(const exchange::View& view) {
  if (names_.size() < view.resources()) names_ = group_.resources();
  Reservations b;
  b.of_job = own_;
  for (std::uint32_t r = 0; r < view.resources(); ++r)
    read_load(names_[r], view.total(r) - view.load(group_.options().self, r), b);
  return b;
}

Result<void> ExchangeReservations::reserve(const Reservations& seen, const std::string& job, Reservation reservation,
                                           Time /*now*/) {
  std::unique_lock lock(mutex_);
  if (!turn_ended_.wait_for(lock, kTurnPatience, [&] { return deciding_.empty() || deciding_ == job; }))
    return fail(ErrorCode::kUnavailable, std::format("the slots for {} are being reserved first", deciding_), true);
  if (turn_) {
    if (seen.version != turn_->seen.version) return fail(ErrorCode::kConflict, "not decided on the view of this turn");
    return assign(lock, job, std::move(reservation));
  }
  deciding_ = job;
  lock.unlock();
  auto decision = group_.decide(kTurnPatience);
  lock.lock();
  if (!decision) {
    end_turn();
    return std::unexpected(decision.error().in("asking the other operators for their reservations"));
  }
  Reservations now = reservations(decision->view());
  now.version = std::to_string(++turns_);
  const bool same =
      now.reported == seen.reported && now.reported_moves == seen.reported_moves && now.of_job == seen.of_job;
  turn_.emplace(std::move(*decision), std::move(now));
  if (same) return assign(lock, job, std::move(reservation));
  return fail(ErrorCode::kConflict, "the other operators' reservations have changed", true);
}

// Report first, store later: if this process ended between a stored wave and its report, no operator would know of the
// targets until they run.
Result<void> ExchangeReservations::assign(std::unique_lock<std::mutex>& lock, const std::string& job,
                                          Reservation reservation) {
  std::set<std::string> nodes = planned_nodes();
  std::map<std::string, double> more;
  if (reports_plans_)
    for (const ReservedSlot& slot : reservation.slots) {
      add_to(more, slot.node, of_one(reservation));
      more[std::string(kMemory) + slot.node] += static_cast<double>(reservation.checkpoint);
      if (!reservation.start) more[std::string(kMoves) + slot.set] += 1;
    }
  std::vector<exchange::Assignment> assignments;
  for (const auto& [name, load] : more) {
    if (load == 0) continue;
    assignments.push_back({group_.options().self, number_of(name), load});
    reported_[name] += load;
  }
  own_.insert_or_assign(job, std::move(reservation));
  auto decision = std::move(turn_->decision);
  turn_.reset();
  lock.unlock();
  const auto confirmed = decision.assign_confirmed(std::move(assignments), kTurnPatience);
  lock.lock();
  end_turn();
  nodes.merge(planned_nodes());
  if (!confirmed) own_.erase(job);
  report(nodes);  // releases the job's previous reservation, and the new one unless it is confirmed
  if (!confirmed) return std::unexpected(confirmed.error().in("reporting a move to the other operators"));
  return {};
}

void ExchangeReservations::end_turn() {
  turn_.reset();
  deciding_.clear();
  turn_ended_.notify_all();
}

void ExchangeReservations::reconciled(const std::string& job) {
  const std::lock_guard lock(mutex_);
  if (deciding_ == job) end_turn();
}

Result<void> ExchangeReservations::release(const std::string& job, Time /*now*/) {
  const std::lock_guard lock(mutex_);
  const std::set<std::string> nodes = planned_nodes();
  if (own_.erase(job) != 0) report(nodes);
  return {};
}

void ExchangeReservations::pods_changed(const std::string& node) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> nodes = planned_nodes();  // a target may have been placed elsewhere than planned
  if (!node.empty()) nodes.insert(node);
  report(nodes);
}

std::set<std::string> ExchangeReservations::planned_nodes() const {
  std::set<std::string> nodes;
  for (const auto& [job, reservation] : own_)
    for (const ReservedSlot& slot : reservation.slots) nodes.insert(slot.node);
  return nodes;
}

// Everything that we hold on those nodes, and all our moves.
std::map<std::string, double> ExchangeReservations::loads(const std::set<std::string>& nodes) const {
  std::map<std::string, double> held;
  for (const auto& [job, reservation] : own_)
    for (const ReservedSlot& slot : reservation.slots) {
      if (!reservation.start) held[std::string(kMoves) + slot.set] += 1;
      if (!nodes.contains(slot.node)) continue;
      const bool placed = usage_.is_placed(job.substr(0, job.find('/')), slot.pod);
      if (reports_plans_ && !placed) add_to(held, slot.node, of_one(reservation));
      if (reports_plans_ || placed) add_to(held, slot.node, {0, reservation.checkpoint, 0});
    }
  // After the slots, so that a target placed in between counts twice for a moment rather than not at all.
  for (const std::string& node : nodes) add_to(held, node, usage_.of_all(node));
  return held;
}

// Only what differs from what the group has of this operator.
void ExchangeReservations::report(const std::set<std::string>& nodes) {
  std::map<std::string, double> held = loads(nodes);
  for (const auto& [name, load] : reported_)
    if (name.starts_with(kMoves) || (name.starts_with(kExtended) && nodes.contains(name.substr(name.rfind(' ') + 1))))
      held.try_emplace(name, 0);
  for (const auto& [name, load] : held) {
    double& reported = reported_[name];
    const double by = load - std::exchange(reported, load);
    if (by != 0 && joined_) group_.load_changed(number_of(name), by);
  }
}

std::uint32_t ExchangeReservations::number_of(const std::string& resource) {
  const auto [it, is_new] = numbers_.try_emplace(resource, 0);
  if (is_new) it->second = group_.resource(resource);
  return it->second;
}

}  // namespace bsp::reconcile
