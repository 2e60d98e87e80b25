// A job's checkpoint sets: listed, and asked for by a person. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::screens {

// A row for each set, the newest first, with one that is being stored and why the last one was not.
std::string sets_table(const crds::BspJob& job, Time now);

// A set that a person wants: the value of names::kAnnotationCheckpoint by which it is asked for.
struct WantedSet {
  std::string value;
  std::uint64_t ids_before = 0;  // highest number of a set by then
};
// kRefused: the job makes no sets, or no ranks run now.
Result<WantedSet> want_set(const crds::BspJob& job, Time now);

// What became of it: a line for people; kFailed: there is none, and why. nullopt: it isn't known yet.
std::optional<Result<std::string>> outcome_of(const WantedSet& wanted, const crds::BspJob& job);

}  // namespace bsp::screens
