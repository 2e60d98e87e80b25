#include "crds/sets/exported_set.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/core/base64.h"
#include "base/json/bounded.h"
#include "crds/fields.h"
#include "crds/reflect.h"

namespace bsp::crds {

constexpr void fields_of(Of<ExportedSet>, auto&& v) {
  v("uid", &ExportedSet::uid, kRequired);
  v("epochsUsed", &ExportedSet::epochs_used, kRequired);
  v("set", &ExportedSet::set, kRequired);
}

namespace {

constexpr std::size_t kMostText = 512 << 10;  // bytes, as the CRD has it
constexpr JsonLimits kExportLimits{.bytes = kMostText, .values = 4096, .depth = 8};
constexpr std::uint64_t kMostNumber = std::uint64_t{1} << 53;  // those of the set are counted on from here
constexpr std::size_t kDigestBytes = 32;

// It names a directory.
bool is_uid(const std::string& text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

std::string export_text(const ExportedSet& exported) { return base64_encode(reflect::write(exported).dump()); }

Result<ExportedSet> read_exported(const std::string& text) {
  const auto bad = [](const std::string& what) {
    return fail(ErrorCode::kInvalid, what + "; take it as kubectl bsp checkpoints JOB --export prints it");
  };
  if (text.size() > kMostText) return bad("is too long");
  const auto decoded = base64_decode(text);
  if (!decoded) return bad("is not base64");
  const auto parsed = parse_bounded(*decoded, kExportLimits);
  if (!parsed) return bad(parsed.error().message);
  auto exported = reflect::read<ExportedSet>(*parsed, "set");
  if (!exported) return bad(exported.error().message);
  StoredSet& set = exported->set;
  if (!is_uid(exported->uid)) return bad("its uid is none");
  for (const std::uint64_t number : {set.id, set.epoch, set.superstep.value, exported->epochs_used})
    if (number >= kMostNumber) return bad("a number in it is too large");
  if (set.id == 0 || set.base >= set.id) return bad("the number of the set, or of its base, is none");
  const auto digests = base64_decode(set.digests);
  if (!digests || digests->empty() || digests->size() % kDigestBytes != 0) return bad("it has no digest of each rank");
  set.unusable.clear();
  set.of_job.clear();
  set.grant.clear();
  return exported;
}

}  // namespace bsp::crds
