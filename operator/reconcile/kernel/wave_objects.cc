// Waves as RankMigrations: which wait for one, which show one, which belong to none.
#include <algorithm>
#include <cmath>
#include <format>
#include <ranges>
#include <tuple>

#include "base/core/counted.h"
#include "base/core/first_few.h"
#include "base/core/significant.h"
#include "crds/fields.h"
#include "crds/names.h"
#include "crds/stored_status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

using migrate::Phase;

const crds::RankMigration* migration_of(const migrate::Move& move, const Observed& o) {
  const auto it = std::ranges::find(o.migrations, move.migration, [](const auto& m) { return m.metadata.name; });
  return it == o.migrations.end() ? nullptr : &*it;
}

bool target_was_made(const migrate::Wave& wave, const migrate::Move& move, const Observed& o) {
  if (move.into_free_seat) {
    const wire::RankStatus* said = o.said(move.target());
    return wave.phase != Phase::kPreparing || (said && said->transfer.migration == move.migration);
  }
  return !move.target_uid.empty() || o.pods.contains(move.target_pod) || o.being_made.contains(move.target_pod);
}

// Times of creation are whole seconds, so one that was applied together with its job is not older.
bool is_older_than(const crds::RankMigration& migration, const crds::BspJob& job) {
  const Time made = migration.metadata.creation_timestamp;
  return migration.metadata.owner_references.empty() && made != Time{} && made < job.metadata.creation_timestamp;
}

std::vector<MoveRequest> waiting_requests(const Observed& o) {
  std::vector<MoveRequest> requests;
  for (const crds::RankMigration& m : o.migrations) {
    if (m.status.phase != Phase::kPending || m.status.wave != 0 || m.spec.wave != 0) continue;
    if (m.metadata.deletion_timestamp != Time{}) continue;
    const bool away = m.spec.target_node == crds::kAnyOtherNode;
    requests.push_back({.migration = m.metadata.name,
                        .rank = m.spec.rank.value,
                        .set = m.spec.target_set,
                        .node = away ? "" : m.spec.target_node,
                        .away = away});
  }
  return requests;
}

std::vector<crds::RankMigration> asked_on_pods(const Observed& o) {
  std::vector<crds::RankMigration> out;
  if (!o.job.status.epoch) return out;
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const PodFacts* pod = o.pod(place.seat());
    if (!pod || pod->deleting || pod->move_to.empty()) continue;
    const std::string& to = pod->move_to;
    crds::RankMigration m;
    // One for each pod and value: its answer stays, and another value asks again.
    m.metadata.name =
        named_after(o.job.metadata, std::format("-r{}-g{}-{:08x}", place.rank.value, place.generation,
                                                static_cast<std::uint32_t>(std::hash<std::string>{}(to))));
    m.metadata.name_space = o.job.metadata.name_space;
    m.metadata.labels[std::string(names::kLabelJob)] = o.job.metadata.name;
    m.metadata.labels[std::string(names::kLabelRank)] = std::to_string(place.rank.value);
    m.metadata.owner_references = owner_reference(o.job);
    m.spec.job = o.job.metadata.name;
    m.spec.rank = place.rank;
    if (to == crds::kAnyOtherNode)
      m.spec.target_node = to;
    else
      m.spec.target_set = to.substr(0, 63);
    out.push_back(std::move(m));
  }
  return out;
}

namespace {
void add_too_many(const Observed& o, std::vector<Refusal>& out) {
  std::vector<const crds::RankMigration*> waiting;
  for (const crds::RankMigration& m : o.migrations)
    if (m.status.phase == Phase::kPending && m.spec.wave == 0 && m.status.wave == 0 &&
        m.metadata.owner_references.empty() && m.metadata.deletion_timestamp == Time{})
      waiting.push_back(&m);
  if (waiting.size() <= kMostWaiting) return;
  std::ranges::sort(waiting, {},
                    [](const auto* m) { return std::tie(m->metadata.creation_timestamp, m->metadata.name); });
  for (std::size_t i = kMostWaiting; i < waiting.size(); ++i)
    out.push_back({waiting[i]->metadata.name, "TooManyWaiting",
                   std::format("{} RankMigrations of this job wait already: make it again when some of them have ended",
                               kMostWaiting)});
}
}  // namespace

std::vector<Refusal> orphans(const migrate::Wave* wave, const Observed& o) {
  std::vector<Refusal> out;
  for (const crds::RankMigration& m : o.migrations) {
    const std::uint32_t number = std::max(m.spec.wave, m.status.wave);
    if (crds::is_finished(m.status.phase) || number == 0) continue;
    if (wave && std::ranges::any_of(wave->moves, [&](const auto& move) { return move.migration == m.metadata.name; }))
      continue;
    out.push_back({m.metadata.name, "NoSuchWave",
                   std::format("it is not part of a wave: wave {} is over or was never begun; a migration made by "
                               "hand leaves spec.wave out",
                               number)});
  }
  add_too_many(o, out);
  return out;
}

std::vector<crds::RankMigration> show_wave(const migrate::Wave& wave, const Observed& o) {
  std::vector<crds::RankMigration> out;
  for (std::size_t i = 0; i < wave.moves.size(); ++i) {
    const migrate::Move& move = wave.moves[i];
    const crds::RankMigration* have = migration_of(move, o);
    crds::RankMigration m;
    if (have) {
      m = *have;
      if (crds::is_finished(m.status.phase)) continue;
    } else {
      if (migrate::is_finished(wave) || target_was_made(wave, move, o)) continue;  // it was deleted
      m.metadata.name = move.migration;
      m.metadata.name_space = o.job.metadata.name_space;
      m.metadata.labels[std::string(names::kLabelJob)] = o.job.metadata.name;
      m.metadata.labels[std::string(names::kLabelRank)] = std::to_string(move.rank);
      m.metadata.owner_references = owner_reference(o.job);
      m.spec.job = o.job.metadata.name;
      m.spec.rank = {move.rank};
      m.spec.target_set = o.job.status.epoch ? o.job.status.epoch->sets[move.target_set] : "";
      m.spec.wave = wave.number;
      m.spec.predicted_gain_seconds = move.predicted_gain_seconds;
    }
    crds::RankMigrationStatus& s = m.status;
    const Phase before = s.phase;
    s.observed_generation = m.metadata.generation;
    s.phase = wave.phase;
    s.reason = wave.reason;
    s.message = wave.message + (wave.message.empty() || wave.delay.empty() ? "" : "; ") + wave.delay;
    s.phase_times = wave.times;
    s.wave = wave.number;
    s.superstep = {wave.gate.superstep};
    s.from_epoch = wave.base_epoch;
    s.to_epoch = wave.rollback_committed ? wave.rollback_epoch : wave.next_epoch;
    s.source_pod = move.source_pod;
    s.target_pod = move.target_pod;
    s.target_node = move.target_node;
    if (const auto pod = o.pods.find(move.target_pod); pod != o.pods.end() && !pod->second.node.empty())
      s.target_node = pod->second.node;
    if (o.job.status.epoch) s.target_set = o.job.status.epoch->sets[move.target_set];
    if (const auto pod = o.pods.find(move.source_pod); pod != o.pods.end()) {
      s.source_set = pod->second.set;
      s.source_node = pod->second.node;
    }
    if (s.start_time == Time{} && !wave.times.empty()) s.start_time = wave.times.front().time;
    if (m.spec.predicted_gain_seconds != 0) s.predicted_gain_seconds = significant(m.spec.predicted_gain_seconds, 6);
    if (migrate::is_finished(wave)) {
      s.completion_time = wave.times.back().time;
      s.pause = wave.pause;
      crds::visit_fields(s.pause, [](const char*, double& ms) { ms = significant(ms, 4); });
      if (i < wave.bytes.size()) s.bytes = wave.bytes[i];
    }
    if (!have || before != s.phase || have->status.superstep != s.superstep || have->status.message != s.message ||
        have->status.phase_times.size() != s.phase_times.size())
      out.push_back(std::move(m));
  }
  return out;
}

namespace {

constexpr std::size_t kNamedMoves = 4;

// "slow→fast (node slow-0→fast-2)"
std::string way_of(const migrate::Move& move, const Observed& o) {
  const auto target = o.pods.find(move.target_pod);
  const bool placed = target != o.pods.end() && !target->second.node.empty();
  const auto& epoch = o.job.status.epoch;
  const std::string nodes =
      std::format("node {}→{}", move.source_node, placed ? target->second.node : move.target_node);
  return epoch ? std::format("{}→{} ({})", epoch->sets[move.source_set], epoch->sets[move.target_set], nodes) : nodes;
}

}  // namespace

std::vector<Event> wave_events(const migrate::Wave& wave, const Observed& o) {
  const bool moved = wave.phase == Phase::kSucceeded;
  const char* reason = moved ? "RankMoved" : wave.phase == Phase::kFailed ? "MigrationFailed" : "MigrationRolledBack";
  const std::string verb = moved                          ? "moved"
                           : wave.phase == Phase::kFailed ? "was lost on its way"
                                                          : "stays where it was, its migration was rolled back:";
  const std::string how = moved ? std::format(" in {}", crds::duration_text(wave.pause.total_ms * 1e-3))
                                : std::format(": {}", wave.message.empty() ? wave.reason : wave.message);
  const std::string more =
      wave.moves.size() > kNamedMoves
          ? std::format(" (and {} of wave {})", counted(wave.moves.size() - kNamedMoves, "more rank"), wave.number)
          : "";
  std::vector<Event> events;
  for (const migrate::Move& move : wave.moves | std::views::take(kNamedMoves))
    events.push_back({moved ? "Normal" : "Warning", reason,
                      std::format("Rank {} {} {}{}{}", move.rank, verb, way_of(move, o), how, more)});
  return events;
}

Event gain_event(const std::vector<RealisedGain>& gains, const std::vector<crds::RankMigration>& migrations) {
  FirstFew moves;
  for (const RealisedGain& gain : gains) {
    const auto m = std::ranges::find(migrations, gain.migration, [](const auto& each) { return each.metadata.name; });
    if (m != migrations.end())
      moves.add(std::format("rank {} {}→{} (gain {})", m->spec.rank.value, m->status.source_set, m->status.target_set,
                            crds::gain_text(gain.seconds, gain.error, gain.is_noise)));
  }
  const RealisedGain& first = gains.front();
  std::string besides;
  if (first.control && std::abs(*first.control - 1) >= 0.01)
    besides = std::format("; ranks that stayed compute {:.2f} times as long", *first.control);
  if (!first.control) besides = "; no rank stayed on a node of its own to compare with";
  if (first.superstep_is_noise) besides += "; the difference can't be told from noise";
  return {"Normal", "GainMeasured",
          std::format("Superstep {} → {} since the move of {}{}", crds::duration_text(first.superstep_before),
                      crds::duration_text(first.superstep_after), moves.text(), besides)};
}

crds::RankMigration refused(const crds::RankMigration& migration, const Refusal& refusal, Time now) {
  crds::RankMigration m = migration;
  m.status.observed_generation = m.metadata.generation;
  m.status.phase = Phase::kFailed;
  m.status.reason = refusal.reason;
  m.status.message = refusal.message;
  m.status.start_time = m.status.completion_time = now;
  m.status.phase_times = {{Phase::kPending, now}, {Phase::kFailed, now}};
  return m;
}

}  // namespace bsp::reconcile
