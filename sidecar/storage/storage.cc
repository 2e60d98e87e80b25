#include "sidecar/storage/storage.h"

#include <charconv>
#include <format>

#include "sidecar/storage/bucket.h"
#include "sidecar/storage/directory.h"

namespace bsp::storage {
namespace {

constexpr std::string_view kSet = "set-";

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

std::string set_name(std::uint64_t set) { return std::format("{}{}", kSet, set); }
std::string file_name(const ImageName& name) { return std::format("rank-{}", name.rank); }

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

std::shared_ptr<const Storage> open_storage(const Location& location) {
  if (location.place.empty()) return nullptr;
  if (location.place.starts_with(kBucketScheme)) return std::make_shared<Bucket>(location);
  return std::make_shared<Directory>(location.place);
}

}  // namespace bsp::storage
