#include "operator/migrate/action.h"

#include "crds/requests.h"

namespace bsp::migrate {

std::string_view to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::kCreateTargetPod:
      return "create target pod";
    case ActionKind::kDeletePod:
      return "delete pod";
    case ActionKind::kPrepareEpoch:
      return wire::kPrepareEpoch;
    case ActionKind::kOpenEpoch:
      return wire::kOpenEpoch;
    case ActionKind::kReceive:
      return wire::kReceive;
    case ActionKind::kArmGate:
      return wire::kArmGate;
    case ActionKind::kCommitGate:
      return wire::kCommitGate;
    case ActionKind::kCancelGate:
      return wire::kCancelGate;
    case ActionKind::kSend:
      return wire::kSend;
    case ActionKind::kRestore:
      return wire::kRestore;
    case ActionKind::kDiscard:
      return wire::kDiscard;
  }
  return "?";
}

namespace {

wire::SendRequest send_of(const Move& move) { return {move.migration, move.target_pod, move.target_address}; }

}  // namespace

Action::Fields Action::encoded() const { return plan ? std::make_shared<const nlohmann::json>(*plan) : fields; }

Action Action::prepare_epoch(std::string pod, Plan plan) {
  const std::uint64_t epoch = plan->epoch;
  return {.kind = ActionKind::kPrepareEpoch, .pod = std::move(pod), .number = epoch, .plan = std::move(plan)};
}

Action Action::open_epoch(std::string pod, std::uint64_t epoch) {
  return {.kind = ActionKind::kOpenEpoch,
          .pod = std::move(pod),
          .number = epoch,
          .fields = wire::encode(wire::EpochRequest{epoch})};
}

Action Action::arm_gate(std::string pod, std::uint64_t superstep) {
  return {.kind = ActionKind::kArmGate,
          .pod = std::move(pod),
          .number = superstep,
          .fields = wire::encode(wire::GateRequest{superstep})};
}

Action Action::commit_gate(std::string pod, std::uint64_t superstep) {
  return {.kind = ActionKind::kCommitGate,
          .pod = std::move(pod),
          .number = superstep,
          .fields = wire::encode(wire::CommitRequest{superstep, {}})};
}

Action Action::commit_gate_and_send(std::uint64_t superstep, const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kCommitGate,
          .pod = wave.moves[move].source_pod,
          .number = superstep,
          .move = move,
          .fields = wire::encode(wire::CommitRequest{superstep, send_of(wave.moves[move])})};
}

Action Action::cancel_gate(std::string pod, std::uint64_t superstep) {
  return {.kind = ActionKind::kCancelGate,
          .pod = std::move(pod),
          .number = superstep,
          .fields = wire::encode(wire::GateRequest{superstep})};
}

Action Action::receive(const Wave& wave, std::size_t move) {
  const Move& m = wave.moves[move];
  return {.kind = ActionKind::kReceive,
          .pod = m.target_pod,
          .move = move,
          .fields = wire::encode(wire::ReceiveRequest{m.migration, m.source_pod, true})};
}

Action Action::send(const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kSend,
          .pod = wave.moves[move].source_pod,
          .move = move,
          .fields = wire::encode(send_of(wave.moves[move]))};
}

Action Action::restore(const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kRestore,
          .pod = wave.moves[move].target_pod,
          .move = move,
          .fields = wire::encode(wire::MigrationRequest{wave.moves[move].migration})};
}

Action Action::discard(std::string pod, const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kDiscard,
          .pod = std::move(pod),
          .move = move,
          .fields = wire::encode(wire::MigrationRequest{wave.moves[move].migration})};
}

}  // namespace bsp::migrate
