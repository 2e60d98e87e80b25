// What decision makers say to each other about loads (operator/exchange): operator replicas that decide for different
// jobs onto the same pools, Set Managers. Transport: base/net/link.h, as in crds/wire.h.
//
// M  exchange  {group, generation, from, instance, resources: [name], number, messages: [ExchangeMessage]}
//              -> {instance, generation}
//
// M = a member of the group, known by its certificate. `number` is that of the first message, from 1, counted by the
// sender for each receiver; what comes twice is taken in once. No messages: are you there? `instance`, of the asker and
// of the answerer, tells a member from the one that ran in its place before. `generation`: all members begin anew, each
// with what it holds, in the next one when one that was lost is back; whoever hears of a higher one goes over to it,
// and an answer of another generation than the request's says that nothing was taken in. Every member numbers the
// resources by itself, from 0; `resources` are their names, to which the numbers in this batch belong.
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
  std::vector<double> loads{};  // index: resource; 0 of those behind the last
  std::vector<ExchangeAssignment> assignments{};
  bool operator==(const ExchangeMessage&) const = default;
};

struct ExchangeBatch {
  std::string group;             // one set of members, one mechanism
  std::uint64_t generation = 1;  // from 1
  std::uint32_t from = 0;
  std::uint64_t instance = 0;
  std::vector<std::string> resources;
  std::uint64_t number = 0;
  std::vector<ExchangeMessage> messages;
};

std::string_view to_string(ExchangeKind kind);  // "Hello", "Load", …

void to_json(nlohmann::json& j, const ExchangeMessage& v);
void to_json(nlohmann::json& j, const ExchangeBatch& v);

// Errors name the field. Refuses members outside the group, resources that have no name and amounts that are not finite
// numbers.
Result<ExchangeBatch> exchange_batch_from_json(const nlohmann::json& j, std::uint32_t members);

}  // namespace bsp::wire
