// JSON of exchange.h.
#include "crds/exchange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>

namespace bsp::wire {
namespace {

constexpr std::array<std::string_view, 7> kExchangeKinds{"Hello", "Load",   "Reserve", "NoMoreMaster",
                                                         "Start", "Answer", "End"};

std::unexpected<Error> wrong_exchange(std::string_view where, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("exchange.{} {}", where, what));
}

// A whole number in [0, limit], absent: 0.
Result<std::uint64_t> exchange_count(const nlohmann::json& object, const char* name, const std::string& where,
                                     std::uint64_t limit = UINT64_MAX) {
  const auto it = object.find(name);
  if (it == object.end()) return 0;
  if (!it->is_number_unsigned()) return wrong_exchange(where + name, "is not a whole number from 0");
  const auto value = it->get<std::uint64_t>();
  if (value > limit)
    return wrong_exchange(where + name, std::format("is {}; the group has it up to {} only", value, limit));
  return value;
}

bool tells_loads(ExchangeKind kind) {
  return kind == ExchangeKind::kHello || kind == ExchangeKind::kLoad || kind == ExchangeKind::kAnswer;
}

Result<double> exchange_amount(const nlohmann::json& value, const std::string& where) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return wrong_exchange(where, "is not a finite number");
  return value.get<double>();
}

struct ExchangeGroupSize {
  std::uint32_t members = 0;
  std::size_t resources = 0;
};

Result<ExchangeMessage> exchange_message(const nlohmann::json& j, const std::string& where, ExchangeGroupSize size) {
  if (!j.is_object()) return wrong_exchange(where, "is not an object");
  ExchangeMessage message;
  const auto kind = j.find("kind");
  const auto known = kind != j.end() && kind->is_string()
                         ? std::ranges::find(kExchangeKinds, kind->get_ref<const std::string&>())
                         : kExchangeKinds.end();
  if (known == kExchangeKinds.end())
    return wrong_exchange(where + ".kind", "is no kind of message that this version knows");
  message.kind = static_cast<ExchangeKind>(known - kExchangeKinds.begin());
  BSP_TRY(message.id, exchange_count(j, "id", where + "."));
  BSP_TRY(message.decided, exchange_count(j, "decided", where + "."));
  if (const auto loads = j.find("loads"); loads != j.end()) {
    if (!loads->is_array() || loads->size() > size.resources)
      return wrong_exchange(
          where + ".loads",
          std::format("is not an array of numbers for the {} resources that have a name", size.resources));
    for (const nlohmann::json& load : *loads) {
      BSP_TRY(message.loads.emplace_back(), exchange_amount(load, where + ".loads"));
    }
  }
  if (tells_loads(message.kind) && !j.contains("loads")) return wrong_exchange(where + ".loads", "is missing");
  if (const auto list = j.find("assignments"); list != j.end()) {
    if (!list->is_array()) return wrong_exchange(where + ".assignments", "is not an array");
    for (const nlohmann::json& one : *list) {
      const std::string here = where + ".assignments.";
      if (!one.is_object() || !one.contains("amount")) return wrong_exchange(here + "amount", "is missing");
      BSP_TRY(const std::uint64_t to, exchange_count(one, "to", here, size.members - 1));
      BSP_TRY(const std::uint64_t resource, exchange_count(one, "resource", here));
      if (resource >= size.resources)
        return wrong_exchange(here + "resource",
                              std::format("is {}; only {} resources have a name", resource, size.resources));
      BSP_TRY(const double amount, exchange_amount(one["amount"], here + "amount"));
      message.assignments.push_back({static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(resource), amount});
    }
  }
  return message;
}

}  // namespace

std::string_view to_string(ExchangeKind kind) { return kExchangeKinds[static_cast<std::size_t>(kind)]; }

void to_json(nlohmann::json& j, const ExchangeMessage& v) {
  j = {{"kind", to_string(v.kind)}};
  if (v.id) j["id"] = v.id;
  if (v.decided) j["decided"] = v.decided;
  if (tells_loads(v.kind)) j["loads"] = v.loads;
  for (const ExchangeAssignment& a : v.assignments)
    j["assignments"].push_back({{"to", a.to}, {"resource", a.resource}, {"amount", a.amount}});
}

void to_json(nlohmann::json& j, const ExchangeBatch& v) {
  j = {{"group", v.group},         {"generation", v.generation}, {"from", v.from},        {"instance", v.instance},
       {"resources", v.resources}, {"number", v.number},         {"messages", v.messages}};
}

Result<ExchangeBatch> exchange_batch_from_json(const nlohmann::json& j, std::uint32_t members) {
  if (!j.is_object()) return wrong_exchange("", "is not an object");
  ExchangeBatch batch;
  const auto group = j.find("group");
  if (group == j.end() || !group->is_string()) return wrong_exchange("group", "is missing or not a string");
  batch.group = group->get<std::string>();
  BSP_TRY(const std::uint64_t from, exchange_count(j, "from", "", members - 1));
  batch.from = static_cast<std::uint32_t>(from);
  BSP_TRY(batch.instance, exchange_count(j, "instance", ""));
  BSP_TRY(batch.number, exchange_count(j, "number", ""));
  BSP_TRY(batch.generation, exchange_count(j, "generation", ""));
  if (batch.generation == 0) return wrong_exchange("generation", "is missing; they are counted from 1");
  if (batch.number == 0) return wrong_exchange("number", "is missing; messages are counted from 1");
  if (const auto names = j.find("resources"); names != j.end()) {
    if (!names->is_array()) return wrong_exchange("resources", "is not an array");
    for (const nlohmann::json& name : *names) {
      if (!name.is_string()) return wrong_exchange("resources", "has a name that is not a string");
      batch.resources.push_back(name.get<std::string>());
    }
  }
  const ExchangeGroupSize size{members, batch.resources.size()};
  const auto messages = j.find("messages");
  if (messages == j.end() || !messages->is_array()) return wrong_exchange("messages", "is missing or not an array");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    BSP_TRY(batch.messages.emplace_back(), exchange_message((*messages)[i], std::format("messages[{}]", i), size));
  }
  return batch;
}

}  // namespace bsp::wire
