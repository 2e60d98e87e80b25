// The protocol by which decision makers exchange loads (operator/exchange): operators that decide for different jobs on
// the same pools, or Set Managers. Transport: base/net/link.h, as in crds/wire.h.
//
// M  exchange  {group, generation, from, instance, resources: [name], number, messages: [ExchangeMessage]}
//              -> {instance, generation}
//
// M = a member of the group, identified by its certificate. `number` is that of the first message: the sender counts from
// 1 for each receiver, and duplicates are dropped. A batch without messages is a ping. `instance`, of caller and
// callee, distinguishes a member from an earlier process in its place. `generation`: when a lost member returns, all
// members start over in the next generation, each with what it holds; a member that learns of a higher one moves to it,
// and an answer from another generation than the request's means that nothing was accepted. Every member numbers the
// resources by itself, from 0; `resources` are the names that belong to the numbers in this batch.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"

namespace bsp::wire {

using bsp::to_string;

inline constexpr const char* kExchange = "exchange";

// The group chooses the unit of all loads and amounts; it is the same for all members (slots, seconds of work,
// instructions).
enum class ExchangeKind {
  kHello,    // Naive, Increments: loads = all I hold, sent once at the start
  kLoads,    // Naive: loads = all I hold, id = 2, 3, …; Increments: loads = what it has changed by since the last one
  kReserve,  // Increments: assignments = what I have just decided
  kNoMoreMaster,  // Naive, Increments: I make no more decisions; don't send me loads
  kStart,         // Snapshot: request `id`, replaces my earlier ones; I had finished `decided` decisions before
  kAnswer,        // Snapshot: loads = all I hold, for your request `id`; granted until you end or replace it
  kEnd,           // Snapshot: my decision number `decided` was this: assignments. My request is over
};

constexpr auto names_of(Of<ExchangeKind>) {
  return std::to_array<std::string_view>({"Hello", "Load", "Reserve", "NoMoreMaster", "Start", "Answer", "End"});
}

struct ExchangeAssignment {
  std::uint32_t to = 0;        // member that holds the resource
  std::uint32_t resource = 0;  // which of its resources
  double amount = 0;           // load it has more from now on
  bool operator==(const ExchangeAssignment&) const = default;
};
constexpr void fields_of(Of<ExchangeAssignment>, auto&& v) {
  v("to", &ExchangeAssignment::to);
  v("resource", &ExchangeAssignment::resource);
  v("amount", &ExchangeAssignment::amount, kRequired);
}

struct ExchangeMessage {
  ExchangeKind kind = ExchangeKind::kHello;
  std::uint64_t id = 0;
  std::uint64_t decided = 0;
  std::vector<double> loads{};  // index: resource; 0 of those behind the last
  std::vector<ExchangeAssignment> assignments{};
  bool operator==(const ExchangeMessage&) const = default;
};
constexpr void fields_of(Of<ExchangeMessage>, auto&& v) {
  v("kind", &ExchangeMessage::kind, kRequired);
  v("id", &ExchangeMessage::id, kRare);
  v("decided", &ExchangeMessage::decided, kRare);
  v("loads", &ExchangeMessage::loads, kRare);  // but of the kinds that have loads
  v("assignments", &ExchangeMessage::assignments, kRare);
}

struct ExchangeBatch {
  std::string group;             // one set of members, one mechanism
  std::uint64_t generation = 1;  // from 1
  std::uint32_t from = 0;
  std::uint64_t instance = 0;
  std::vector<std::string> resources;
  std::uint64_t number = 0;
  std::vector<ExchangeMessage> messages;
};
constexpr void fields_of(Of<ExchangeBatch>, auto&& v) {
  v("group", &ExchangeBatch::group, kRequired);
  v("generation", &ExchangeBatch::generation, kRequired);
  v("from", &ExchangeBatch::from);
  v("instance", &ExchangeBatch::instance);
  v("resources", &ExchangeBatch::resources);
  v("number", &ExchangeBatch::number, kRequired);
  v("messages", &ExchangeBatch::messages, kRequired);
}

void to_json(nlohmann::json& j, const ExchangeMessage& v);
void to_json(nlohmann::json& j, const ExchangeBatch& v);

// Errors name the field. Rejects members outside the group, resources without a name and amounts that aren't finite
// numbers.
Result<ExchangeBatch> exchange_batch_from_json(const nlohmann::json& j, std::uint32_t members);

}  // namespace bsp::wire
