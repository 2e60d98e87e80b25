#include "operator/migrate/action.h"

#include "base/json/fields.h"
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
    case ActionKind::kSave:
      return wire::kSave;
    case ActionKind::kLoad:
      return wire::kLoad;
    case ActionKind::kKeepSets:
      return wire::kKeepSets;
    case ActionKind::kKill:
      return wire::kKill;
  }
  return "?";
}

namespace {

wire::SendRequest send_of(const Move& move) { return {move.migration, move.target_pod, move.target_address}; }

wire::SaveRequest save_of(const Wave& wave) {
  return {.set = wave.checkpoint->set,
          .epoch = wave.base_epoch,
          .attempt = wave.checkpoint->attempt,
          .base = wave.checkpoint->base};
}

// Where the request of a verb has what belongs to an image; null: the verb has none.
nlohmann::json* image_in(nlohmann::json& fields, ActionKind kind) {
  const char* at = kind == ActionKind::kCommitGate ? "save" : kind == ActionKind::kLoad ? "image" : nullptr;
  if (kind == ActionKind::kSave) return &fields;
  const auto found = at ? fields.find(at) : fields.end();
  return found == fields.end() || !found->is_object() ? nullptr : &*found;
}

}  // namespace

nlohmann::json with_token(nlohmann::json fields, const std::optional<wire::Token>& token) {
  if (token) fields[wire::kToken] = reflect::write(*token);
  return fields;
}

Action::Fields Action::encoded() const {
  return std::make_shared<const nlohmann::json>(with_token(plan ? nlohmann::json(*plan) : *fields, token));
}

Action Action::prepare_epoch(Seat seat, Plan plan) {
  const std::uint64_t epoch = plan->epoch;
  return {.kind = ActionKind::kPrepareEpoch, .seat = std::move(seat), .number = epoch, .plan = std::move(plan)};
}

Action Action::open_epoch(Seat seat, std::uint64_t epoch) {
  return {.kind = ActionKind::kOpenEpoch,
          .seat = std::move(seat),
          .number = epoch,
          .fields = wire::encode(wire::EpochRequest{epoch})};
}

Action Action::arm_gate(Seat seat, std::uint64_t superstep) {
  return {.kind = ActionKind::kArmGate,
          .seat = std::move(seat),
          .number = superstep,
          .fields = wire::encode(wire::GateRequest{superstep})};
}

Action Action::commit_gate(Seat seat, std::uint64_t superstep) {
  return {.kind = ActionKind::kCommitGate,
          .seat = std::move(seat),
          .number = superstep,
          .fields = wire::encode(wire::CommitRequest{.superstep = superstep})};
}

Action Action::commit_gate_and_send(std::uint64_t superstep, const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kCommitGate,
          .seat = wave.moves[move].source(),
          .number = superstep,
          .move = move,
          .fields = wire::encode(wire::CommitRequest{.superstep = superstep, .send = send_of(wave.moves[move])})};
}

Action Action::commit_gate_and_save(Seat seat, std::uint64_t superstep, const Wave& wave) {
  return {.kind = ActionKind::kCommitGate,
          .seat = std::move(seat),
          .number = superstep,
          .fields = wire::encode(wire::CommitRequest{.superstep = superstep, .save = save_of(wave)})};
}

Action Action::cancel_gate(Seat seat, std::uint64_t superstep) {
  return {.kind = ActionKind::kCancelGate,
          .seat = std::move(seat),
          .number = superstep,
          .fields = wire::encode(wire::GateRequest{superstep})};
}

Action Action::receive(const Wave& wave, std::size_t move) {
  const Move& m = wave.moves[move];
  return {.kind = ActionKind::kReceive,
          .seat = m.target(),
          .move = move,
          .fields = wire::encode(wire::ReceiveRequest{m.migration, m.source_pod, true})};
}

Action Action::send(const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kSend,
          .seat = wave.moves[move].source(),
          .move = move,
          .fields = wire::encode(send_of(wave.moves[move]))};
}

Action Action::restore(const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kRestore,
          .seat = wave.moves[move].target(),
          .move = move,
          .fields = wire::encode(wire::MigrationRequest{wave.moves[move].migration})};
}

Action Action::kill(Seat seat, std::size_t move) {
  return {.kind = ActionKind::kKill,
          .seat = std::move(seat),
          .move = move,
          .fields = std::make_shared<const nlohmann::json>(nlohmann::json::object())};
}

Action Action::discard(Seat seat, const Wave& wave, std::size_t move) {
  return {.kind = ActionKind::kDiscard,
          .seat = std::move(seat),
          .move = move,
          .fields = wire::encode(wire::MigrationRequest{wave.moves[move].migration})};
}

Action Action::save(Seat seat, const Wave& wave) {
  return {.kind = ActionKind::kSave,
          .seat = std::move(seat),
          .number = wave.checkpoint->set,
          .fields = wire::encode(save_of(wave))};
}

Action Action::load(Seat seat, const wire::LoadRequest& image) {
  return {.kind = ActionKind::kLoad, .seat = std::move(seat), .number = image.image.set, .fields = wire::encode(image)};
}

Action Action::keep_sets(Seat seat, const wire::KeepSetsRequest& sets) {
  return {.kind = ActionKind::kKeepSets, .seat = std::move(seat), .number = sets.below, .fields = wire::encode(sets)};
}

std::optional<Action::NeededKey> Action::needs_key() const {
  if (!fields) return std::nullopt;
  nlohmann::json copy = *fields;
  const nlohmann::json* image = image_in(copy, kind);
  if (image == nullptr) return std::nullopt;
  return NeededKey{count_at<std::uint64_t>(*image, "set"), text_at(*image, "job"), text_at(*image, "grant")};
}

Action Action::with_key(std::string key) const {
  Action keyed = *this;
  nlohmann::json copy = *fields;
  if (nlohmann::json* image = image_in(copy, kind)) {
    (*image)["key"] = std::move(key);
    image->erase("grant");
  }
  keyed.fields = std::make_shared<const nlohmann::json>(std::move(copy));
  return keyed;
}

}  // namespace bsp::migrate
