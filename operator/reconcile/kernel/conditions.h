// The conditions of a BSPJob, in one place: what raises each, its reasons while it is True, what its message says, and the remedy with
// which that ends. docs/conditions.md is made of this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bsp::reconcile {

struct ConditionKind {
  const char* type;
  const char* raised;   // when
  const char* reasons;  // while it is True, and only then
  const char* message;  // what it says, as an example
  const char* remedy;   // "": the condition is a state, and nothing is wrong
};

// In the order of the page: those of conditions.inc, then the states.
std::span<const ConditionKind> condition_kinds();
// check()s that there is one.
const ConditionKind& condition_kind(std::string_view type);
// The message with the remedy at its end; as it is if that stands there already.
std::string with_remedy(std::string_view type, std::string message);

#define BSP_CONDITION(constant, type, ...) inline constexpr const char* constant = type;
#include "operator/reconcile/kernel/conditions.inc"
#undef BSP_CONDITION

}  // namespace bsp::reconcile
