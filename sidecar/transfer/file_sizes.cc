#include "sidecar/transfer/file_sizes.h"

#include <fcntl.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "base/core/fd.h"
#include "base/core/read_file.h"
#include "base/core/write_all.h"

namespace bsp::transfer {
namespace {

constexpr std::size_t kHeadBytes = 8;          // bytes
constexpr std::uint64_t kRegularFile = 3;      // field of file_entry
constexpr std::uint64_t kName = 6, kSize = 8;  // fields of reg_file_entry
enum Wire : std::uint64_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 };

std::optional<std::uint64_t> take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out += static_cast<char>(value);
}

struct ProtoField {
  std::uint64_t number = 0;
  std::string_view whole;    // with its tag
  std::string_view content;  // of kBytes
};

// The next field of a message that isn't empty; nullopt: it is damaged.
std::optional<ProtoField> take_field(std::string_view& text) {
  const std::string_view begin = text;
  const auto tag = take_varint(text);
  if (!tag) return std::nullopt;
  ProtoField field{.number = *tag >> 3, .whole = {}, .content = {}};
  std::uint64_t length = 0;
  switch (*tag & 7) {
    case kVarint:
      if (!take_varint(text)) return std::nullopt;
      break;
    case kEight:
      length = 8;
      break;
    case kFour:
      length = 4;
      break;
    case kBytes: {
      const auto bytes = take_varint(text);
      if (!bytes) return std::nullopt;
      length = *bytes;
      break;
    }
    default:
      return std::nullopt;
  }
  if (length > text.size()) return std::nullopt;
  field.content = text.substr(0, length);
  text.remove_prefix(length);
  field.whole = begin.substr(0, begin.size() - text.size());
  return field;
}

std::optional<std::string> without(std::string_view message, std::uint64_t number) {
  std::string out;
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field) return std::nullopt;
    if (field->number != number) out += field->whole;
  }
  return out;
}

std::optional<bool> names_one(std::string_view file, const Paths& of) {
  bool found = false;
  while (!file.empty()) {
    const auto field = take_field(file);
    if (!field) return std::nullopt;
    found = found || (field->number == kName && of.contains(field->content));
  }
  return found;
}

std::optional<std::string> without_size(std::string_view entry, const Paths& of) {
  std::string out;
  while (!entry.empty()) {
    const auto field = take_field(entry);
    if (!field) return std::nullopt;
    const auto named = field->number == kRegularFile ? names_one(field->content, of) : false;
    if (!named) return std::nullopt;
    if (!*named) {
      out += field->whole;
      continue;
    }
    const auto file = without(field->content, kSize);
    if (!file) return std::nullopt;
    out += varint(kRegularFile << 3 | kBytes) + varint(file->size()) + *file;
  }
  return out;
}

}  // namespace

Result<std::string> without_file_sizes(std::string_view image, const Paths& of) {
  const auto damaged = [] { return fail(ErrorCode::kInvalid, "files.img is no list of files as criu writes it"); };
  if (image.size() < kHeadBytes) return damaged();
  std::string out(image.substr(0, kHeadBytes));
  image.remove_prefix(kHeadBytes);
  while (!image.empty()) {
    std::uint32_t size = 0;
    if (image.size() < sizeof size) return damaged();
    std::memcpy(&size, image.data(), sizeof size);
    image.remove_prefix(sizeof size);
    if (size > image.size()) return damaged();
    const auto entry = without_size(image.substr(0, size), of);
    if (!entry) return damaged();
    image.remove_prefix(size);
    const auto length = static_cast<std::uint32_t>(entry->size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length).append(*entry);
  }
  return out;
}

Result<void> forget_file_sizes(const std::string& directory, const Paths& of) {
  const std::string path = directory + "/files.img";
  BSP_TRY(const std::string image, read_file(path));
  BSP_TRY(const std::string changed, without_file_sizes(image, of));
  const Fd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return fail_errno("opening " + path);
  if (!write_all(file.get(), changed)) return fail_errno("writing " + path);
  return {};
}

}  // namespace bsp::transfer
