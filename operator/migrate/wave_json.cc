// Wave <-> JSON, as it is stored in BSPJob.status.waveState.
#include <nlohmann/json.hpp>

#include <format>

#include "crds/fields.h"
#include "operator/migrate/wave.h"

namespace bsp::migrate {
namespace {

using nlohmann::json;

json pause_to_json(const crds::PauseParts& pause) {
  json j;
  crds::visit_fields(pause, [&](const char* name, double ms) { j[name] = ms; });
  return j;
}

crds::PauseParts pause_from_json(const json& j) {
  crds::PauseParts pause;
  crds::visit_fields(pause, [&](const char* name, double& ms) { ms = j.value(name, 0.0); });
  return pause;
}

GateState gate_state_from(const std::string& text) {
  for (GateState s : {GateState::kArmed, GateState::kCommitted, GateState::kCancelling, GateState::kDropping})
    if (text == to_string(s)) return s;
  return GateState::kNone;
}

Phase phase_from(const std::string& text) {
  const auto& names = crds::EnumNames<Phase>::names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<Phase>(i);
  throw std::invalid_argument("unknown phase " + text);
}

}  // namespace

json to_json(const Wave& wave) {
  json times = json::array();
  for (const auto& t : wave.times) times.push_back({{"phase", crds::to_string(t.phase)}, {"time", to_rfc3339(t.time)}});
  json moves = json::array();
  for (const Move& m : wave.moves)
    moves.push_back({{"migration", m.migration},
                     {"rank", m.rank},
                     {"sourcePod", m.source_pod},
                     {"sourceUid", m.source_uid},
                     {"sourceAddress", m.source_address},
                     {"sourceSet", m.source_set},
                     {"targetPod", m.target_pod},
                     {"targetUid", m.target_uid},
                     {"targetAddress", m.target_address},
                     {"targetSet", m.target_set},
                     {"targetNode", m.target_node}});
  json j = {
      {"number", wave.number},
      {"phase", crds::to_string(wave.phase)},
      {"times", std::move(times)},
      {"baseEpoch", wave.base_epoch},
      {"nextEpoch", wave.next_epoch},
      {"rollbackEpoch", wave.rollback_epoch},
      {"rollbackCommitted", wave.rollback_committed},
      {"moves", std::move(moves)},
      {"gate",
       {{"state", to_string(wave.gate.state)}, {"superstep", wave.gate.superstep}, {"attempt", wave.gate.attempt}}},
      {"reason", wave.reason},
      {"message", wave.message},
      {"delay", wave.delay},
      {"lateSeconds", wave.late_seconds},
      {"pause", pause_to_json(wave.pause)},
      {"bytes", wave.bytes}};
  if (wave.lost_rank) j["lostRank"] = *wave.lost_rank;
  return j;
}

Result<Wave> wave_from_json(const json& j) {
  try {
    Wave wave;
    j.at("number").get_to(wave.number);
    wave.phase = phase_from(j.at("phase").get<std::string>());
    for (const json& t : j.at("times"))
      wave.times.push_back(
          {phase_from(t.at("phase").get<std::string>()), from_rfc3339(t.at("time").get<std::string>())});
    j.at("baseEpoch").get_to(wave.base_epoch);
    j.at("nextEpoch").get_to(wave.next_epoch);
    j.at("rollbackEpoch").get_to(wave.rollback_epoch);
    j.at("rollbackCommitted").get_to(wave.rollback_committed);
    for (const json& m : j.at("moves"))
      wave.moves.push_back({.migration = m.at("migration").get<std::string>(),
                            .rank = m.at("rank").get<std::uint32_t>(),
                            .source_pod = m.at("sourcePod").get<std::string>(),
                            // Not stored by an older operator: then the source can't be named again.
                            .source_uid = m.value("sourceUid", ""),
                            .source_address = m.value("sourceAddress", ""),
                            .source_set = m.value("sourceSet", 0u),
                            .target_pod = m.at("targetPod").get<std::string>(),
                            .target_uid = m.at("targetUid").get<std::string>(),
                            .target_address = m.at("targetAddress").get<std::string>(),
                            .target_set = m.at("targetSet").get<std::uint32_t>(),
                            .target_node = m.at("targetNode").get<std::string>()});
    wave.gate.state = gate_state_from(j.at("gate").at("state").get<std::string>());
    j.at("gate").at("superstep").get_to(wave.gate.superstep);
    j.at("gate").at("attempt").get_to(wave.gate.attempt);
    j.at("reason").get_to(wave.reason);
    j.at("message").get_to(wave.message);
    wave.delay = j.value("delay", "");
    wave.late_seconds = j.value("lateSeconds", 0.0);
    wave.pause = pause_from_json(j.at("pause"));
    j.at("bytes").get_to(wave.bytes);
    if (j.contains("lostRank")) wave.lost_rank = j.at("lostRank").get<std::uint32_t>();
    return wave;
  } catch (const std::exception& e) {
    return fail(ErrorCode::kInvalid, std::format("status.waveState: {}", e.what()));
  }
}

}  // namespace bsp::migrate
