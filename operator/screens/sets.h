// A job's checkpoint sets: listed, and asked for by a person. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::screens {

// A row for each set, the newest first, with one that is being stored and why the last one was not.
std::string sets_table(const crds::BspJob& job, Time now);

// What leaves the cluster with a set of the job: its description for spec.restoreFrom.exported. kNotFound: the job hasn't it, or no set
// that can be used; kRefused: another job has made it, and is to export it.
struct SetToExport {
  std::uint64_t id = 0;
  std::string description;
};
Result<SetToExport> set_to_export(const crds::BspJob& job, std::optional<std::uint64_t> set);
// As YAML for kubectl apply: the Secret with its key, and as a comment what the job that begins with it names. `key`: 32 bytes.
std::string export_manifest(const crds::BspJob& job, const SetToExport& set, std::string_view key);

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
