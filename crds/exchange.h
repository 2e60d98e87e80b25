// What decision makers say to each other about loads (operator/exchange): operator replicas that decide for different
// jobs onto the same pools, Set Managers. Transport: base/net/link.h, as in crds/wire.h.
//
// M  exchange  {group, from, instance, number, messages: [ExchangeMessage]} -> {instance}
//
// M = a member of the group, known by its certificate. `number` is that of the first message, from 1, counted by the
// sender for each receiver; what comes twice is taken in once. No messages: are you there? `instance`, of the asker and
// of the answerer, tells a member from the one that ran in its place before.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::wire {

inline constexpr const char* kExchange = "exchange";

// Unit of all loads and amounts: the group's choice, the same for all its members (slots, seconds of work,
// instructions).
enum class ExchangeKind {
  kHello,    // Naive, Increments: loads = all I hold, said once at the start
  kLoad,     // Naive: loads = all I hold, id = 2, 3, …; Increments: loads = what it has changed by since the last one
  kReserve,  // Increments: assignments = what I have just decided
  kNoMoreMaster,  // Naive, Increments: I decide no more, don't send me loads
  kStart,         // Snapshot: request `id`, replaces my earlier ones; I had finished `decided` decisions before
  kAnswer,        // Snapshot: loads = all I hold, for your request `id`; you have my word until you end or replace it
  kEnd,           // Snapshot: my decision number `decided` was this: assignments. My request is over
};

struct ExchangeAssignment {
  std::uint32_t to = 0;        // member that holds the resource
  std::uint32_t resource = 0;  // which of its resources
  double amount = 0;           // load it has more from now on
  bool operator==(const ExchangeAssignment&) const = default;
};

struct ExchangeMessage {
  ExchangeKind kind = ExchangeKind::kHello;
  std::uint64_t id = 0;
  std::uint64_t decided = 0;
  std::vector<double> loads{};  // index: resource
  std::vector<ExchangeAssignment> assignments{};
  bool operator==(const ExchangeMessage&) const = default;
};

struct ExchangeBatch {
  std::string group;  // one set of members from their start on; whoever restarts does so in another group
  std::uint32_t from = 0;
  std::uint64_t instance = 0;
  std::uint64_t number = 0;
  std::vector<ExchangeMessage> messages;
};

std::string_view to_string(ExchangeKind kind);  // "Hello", "Load", …

void to_json(nlohmann::json& j, const ExchangeMessage& v);
void to_json(nlohmann::json& j, const ExchangeBatch& v);

// Errors name the field. Refuses members or resources outside the group and amounts that are not finite numbers.
struct ExchangeGroupSize {
  std::uint32_t members = 0;
  std::uint32_t resources = 0;
};
Result<ExchangeBatch> exchange_batch_from_json(const nlohmann::json& j, ExchangeGroupSize size);

}  // namespace bsp::wire
