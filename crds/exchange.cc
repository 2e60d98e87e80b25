// JSON of exchange.h.
#include "crds/exchange.h"

#include <format>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "crds/reflect.h"
#include "crds/wire.h"

namespace bsp::wire {
namespace {

std::unexpected<Error> wrong_exchange(std::string_view where, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("exchange.{}: {}", where, what));
}

bool has_loads(ExchangeKind kind) {
  return kind == ExchangeKind::kHello || kind == ExchangeKind::kLoads || kind == ExchangeKind::kAnswer;
}

// What depends on the group and on what the batch itself says.
Result<void> check_message(const ExchangeMessage& message, const std::string& where, std::uint32_t members,
                           std::size_t resources) {
  if (message.loads.size() > resources)
    return wrong_exchange(where + ".loads", std::format("has {} loads, but only {} resources have a name",
                                                        message.loads.size(), resources));
  for (std::size_t i = 0; i < message.assignments.size(); ++i) {
    const ExchangeAssignment& one = message.assignments[i];
    const std::string here = std::format("{}.assignments[{}]", where, i);
    if (one.to >= members)
      return wrong_exchange(here + ".to", std::format("is {}, but the last member is {}", one.to, members - 1));
    if (one.resource >= resources)
      return wrong_exchange(here + ".resource",
                            std::format("is {}, but only {} resources have a name", one.resource, resources));
  }
  return {};
}

}  // namespace

void to_json(nlohmann::json& j, const ExchangeMessage& v) {
  j = reflect::write(v);
  if (has_loads(v.kind)) j["loads"] = v.loads;
}

void to_json(nlohmann::json& j, const ExchangeBatch& v) {
  j = reflect::write(v);
  j["messages"] = v.messages;
}

Result<ExchangeBatch> exchange_batch_from_json(const nlohmann::json& j, std::uint32_t members) {
  constexpr auto kAnyWhole = std::numeric_limits<std::uint64_t>::max();
  BSP_TRY(ExchangeBatch batch, reflect::read<ExchangeBatch>(j, "exchange", {.most_whole = kAnyWhole}));
  if (batch.from >= members)
    return wrong_exchange("from", std::format("is {}, but the last member is {}", batch.from, members - 1));
  if (batch.generation == 0) return wrong_exchange("generation", "must be at least 1");
  if (batch.number == 0) return wrong_exchange("number", "must be at least 1");
  for (std::size_t i = 0; i < batch.messages.size(); ++i) {
    const std::string where = std::format("messages[{}]", i);
    if (has_loads(batch.messages[i].kind) && part_at(j["messages"][i], "loads").is_null())
      return wrong_exchange(where + ".loads", "is required");
    BSP_CHECK_OK(check_message(batch.messages[i], where, members, batch.resources.size()));
  }
  return batch;
}

}  // namespace bsp::wire
