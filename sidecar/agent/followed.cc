#include "sidecar/agent/followed.h"

#include <cstdlib>
#include <format>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/core/log.h"
#include "base/core/own_file.h"
#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "crds/reflect.h"

namespace bsp::sidecar {

using nlohmann::json;
using wire::Token;

namespace {

constexpr const char *kHighest = "highest", *kGateOver = "gateOver";

// nullopt: the operator is of a version that names none.
Result<std::optional<Token>> token_in(const json& fields) {
  const json& given = part_at(fields, wire::kToken);
  if (given.is_null()) return std::nullopt;
  BSP_TRY(const Token token, reflect::read<Token>(given, "request.token", {.most_whole = UINT64_MAX}));
  return token;
}

std::uint64_t seat_in(const json& fields) { return count_at<std::uint64_t>(fields, "seat"); }

std::string text_of(const Token& token) {
  return std::format("wave {}, epoch {}, attempt {}", token.wave, token.epoch, token.attempt);
}

}  // namespace

Followed::Followed(std::string file) : file_(std::move(file)) {
  const auto text = read_own_file(file_, 65536);
  if (!text) return;
  const auto saved = parse_bounded(*text, {.bytes = 65536, .values = 2048, .depth = 4});
  if (!saved) {
    log_error("cannot read which verbs were followed", {{"reason", saved.error().message}});
    return;
  }
  if (auto token = reflect::read<Token>(part_at(*saved, kHighest), kHighest)) highest_ = *token;
  if (const json& gates = part_at(*saved, kGateOver); gates.is_object())
    for (const auto& [seat, over] : gates.items())
      if (auto token = reflect::read<Token>(over, kGateOver))
        gate_over_[std::strtoull(seat.c_str(), nullptr, 10)] = *token;
}

Result<void> Followed::follow(std::string_view verb, const json& fields) {
  BSP_TRY(const std::optional<Token> token, token_in(fields));
  if (!token) return {};
  const bool sets_gate = verb == wire::kArmGate || verb == wire::kCommitGate;
  const bool is_older = sets_gate || verb == wire::kCancelGate
                            ? *token < highest_
                            : std::pair(token->wave, token->epoch) < std::pair(highest_.wave, highest_.epoch);
  if (is_older)
    return fail(ErrorCode::kConflict,
                std::format("it is of {}, and {} has been followed since", text_of(*token), text_of(highest_)));
  if (const auto over = gate_over_.find(seat_in(fields));
      sets_gate && over != gate_over_.end() && *token <= over->second)
    return fail(ErrorCode::kConflict, std::format("the gate of {} is over", text_of(*token)));
  if (*token <= highest_) return {};
  highest_ = *token;
  save();
  return {};
}

void Followed::end_gate(const json& fields) {
  const auto token = token_in(fields);
  if (!token || !*token) return;
  const auto [over, is_first] = gate_over_.try_emplace(seat_in(fields), **token);
  if (!is_first && **token <= over->second) return;
  over->second = **token;
  save();
}

// A sidecar that can't write still follows the operator, since ranks may wait for it; only its successor would know less.
void Followed::save() const {
  json state{{kHighest, reflect::write(highest_)}};
  for (const auto& [seat, token] : gate_over_) state[kGateOver][std::to_string(seat)] = reflect::write(token);
  if (auto saved = replace_own_file(file_, state.dump(), 0600); !saved)
    log_error("cannot save which verbs were followed", {{"reason", saved.error().message}});
}

}  // namespace bsp::sidecar
