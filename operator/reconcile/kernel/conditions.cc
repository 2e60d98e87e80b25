#include "operator/reconcile/kernel/conditions.h"

#include <algorithm>
#include <array>

#include "base/core/error.h"

namespace bsp::reconcile {
namespace {

constexpr auto kKinds = std::to_array<ConditionKind>({
#define BSP_CONDITION(constant, type, ...) {type, __VA_ARGS__},
#include "operator/reconcile/kernel/conditions.inc"
#undef BSP_CONDITION
    {"Starting", "the pods start", "the phase's", "the phase's", ""},
    {"Running", "every rank runs, also while some move", "the phase's", "the phase's", ""},
    {"Migrating", "a wave moves ranks", "the phase's", "the phase's", ""},
    {"Suspended", "spec.runPolicy.suspend, or Kueue's queue", "the phase's", "the phase's", ""},
    {"Complete", "the program has ended well", "the phase's", "the phase's", ""},
    {"Failed", "the job has failed for good", "the phase's", "the phase's, with the last lines of a rank's log", ""},
});

}  // namespace

std::span<const ConditionKind> condition_kinds() { return kKinds; }

const ConditionKind& condition_kind(std::string_view type) {
  const auto kind = std::ranges::find(kKinds, type, &ConditionKind::type);
  check(kind != kKinds.end(), "every condition is in the table");
  return *kind;
}

std::string with_remedy(std::string_view type, std::string message) {
  const std::string_view remedy = condition_kind(type).remedy;
  if (remedy.empty() || message.ends_with(remedy)) return message;
  return message + "; " + std::string(remedy);
}

}  // namespace bsp::reconcile
