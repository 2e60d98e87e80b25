// What a message of wire.h may cost its reader.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "crds/wire.h"

namespace bsp::wire {

MessageLimits answer_limits(std::string_view verb) {
  // A watch is always open, so this times the number of pods is what hostile sidecars can make their operator hold: no
  // more than the TLS connections themselves take.
  if (verb == kWatch || verb == kStatus) return {.json = {.bytes = 64 << 10, .values = 256, .depth = 8}};
  // All records of a ring, from a sidecar that knows nothing of pages.
  if (verb == kReport) return {.json = {.bytes = 1 << 20, .values = 64 << 10, .depth = 8}};
  if (verb == kSetReport) return {.json = {.bytes = 2 * kReportPage, .values = 400'000, .depth = 8}};
  if (verb == kModex) return {.body = 1 << 20};
  return {};
}

MessageLimits request_limits(bool of_the_operator) {
  // Plans and lists of members, some 200 bytes and 6 values for each rank.
  if (of_the_operator) return {.json = {.bytes = 16 << 20, .values = 1'000'000, .depth = 16}};
  // A part of an all-gather or the whole; the key of a group names its members.
  return {.json = {.bytes = 256 << 10, .values = 256, .depth = 8}, .body = 64u << 20};
}

}  // namespace bsp::wire
