// Ranks that a mapping sends to slots of the same Set and speed, put on nodes so that those meet in a pod who talk most.
//
//   talk(i,k)   what their messages to each other take in two pods of that Set, less what they take in one                s
//   a node      the one with most free slots takes the two who talk most, then who talks most with all that it has, up to its slots;
//               and so on with the next node, while there are two left who talk
//
// Only slots that are free at the call, so that it is one wave, and at most 64 ranks. Nobody goes to another slot of the node that it is
// on.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "operator/decide/auto/partners.h"
#include "operator/decide/model/strategy.h"

namespace bsp::decide {

// Nothing if it would be the same mapping.
std::optional<std::vector<ProcessorId>> packed(const Case& c, const Heard& heard, std::span<const ProcessorId> mapping);

}  // namespace bsp::decide
