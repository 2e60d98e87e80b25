#include "sidecar/storage/storage.h"

#include <algorithm>
#include <charconv>
#include <format>

#include "crds/wire.h"
#include "sidecar/storage/bucket.h"
#include "sidecar/storage/directory.h"

namespace bsp::storage {
namespace {

constexpr std::string_view kSet = "set-", kRank = "rank-", kWhole = "whole-";

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

std::string set_name(std::uint64_t set) { return std::format("{}{}", kSet, set); }
std::string file_name(const ImageName& name) { return std::format("{}{}", kRank, name.rank); }
std::string mark_name(const ImageName& name) { return std::format("{}{}", kWhole, name.rank); }

std::optional<std::uint64_t> set_of(std::string_view directory) {
  if (!directory.starts_with(kSet)) return std::nullopt;
  directory.remove_prefix(kSet.size());
  std::uint64_t set = 0;
  const auto [end, error] = std::from_chars(directory.data(), directory.data() + directory.size(), set);
  // set-007 is none of ours.
  if (error != std::errc() || end != directory.data() + directory.size() || std::to_string(set) != directory)
    return std::nullopt;
  return set;
}

Result<Removable> removable(std::uint64_t set, std::vector<std::uint64_t> keep, const ListFiles& list) {
  std::erase_if(keep, [&](std::uint64_t other) { return other == set || wire::base_of(other) != set; });
  if (keep.empty()) return Removable{.all = true, .files = {}};
  std::vector<std::vector<std::string>> heirs;
  for (const std::uint64_t other : keep) {
    BSP_TRY(heirs.emplace_back(), list(other));
  }
  Removable of;
  BSP_TRY(of.files, list(set));
  std::erase_if(of.files, [&](const std::string& file) {
    if (!file.starts_with(kRank)) return false;
    // The mark of the last one isn't enough: those before it may build on the image.
    const std::string mark = std::string(kWhole) + file.substr(kRank.size());
    return !std::ranges::all_of(heirs, [&](const auto& files) { return std::ranges::contains(files, mark); });
  });
  return of;
}

std::shared_ptr<const Storage> open_storage(const Location& location) {
  if (location.place.empty()) return nullptr;
  if (location.place.starts_with(kBucketScheme)) return std::make_shared<Bucket>(location);
  return std::make_shared<Directory>(location.place);
}

}  // namespace bsp::storage
