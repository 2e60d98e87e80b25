#include "sidecar/init/user.h"

#include <charconv>
#include <optional>
#include <vector>

#include "base/core/read_file.h"

namespace bsp::init {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at != text.data() + text.size() || value == ~0U) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// The first line of a passwd-like file whose field `index` is `value`.
std::optional<std::vector<std::string_view>> find_line(std::string_view file, std::size_t index,
                                                       std::string_view value) {
  for (const std::string_view line : split(file, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() > index && fields.size() >= 3 && fields[index] == value) return fields;
  }
  return std::nullopt;
}

}  // namespace

Result<User> parse_user(std::string_view spec, std::string_view passwd, std::string_view group) {
  if (spec.empty()) spec = "0";
  const std::size_t colon = spec.find(':');
  const std::string_view who = spec.substr(0, colon);
  User user;
  auto entry = find_line(passwd, 0, who);
  if (const auto uid = number(who)) {
    user.uid = *uid;
    entry = find_line(passwd, 2, who);
  } else if (entry && number((*entry)[2])) {
    user.uid = *number((*entry)[2]);
  } else {
    return fail(ErrorCode::kNotFound,
                "user '" + std::string(who) + "' is not in the image's /etc/passwd; use a number");
  }
  if (entry && entry->size() >= 6) {
    user.gid = number((*entry)[3]).value_or(0);
    user.home = (*entry)[5];
  }
  if (colon != std::string_view::npos) {
    const std::string_view name = spec.substr(colon + 1);
    const auto line = find_line(group, 0, name);
    if (const auto gid = number(name)) {
      user.gid = *gid;
    } else if (line && number((*line)[2])) {
      user.gid = *number((*line)[2]);
    } else {
      return fail(ErrorCode::kNotFound,
                  "group '" + std::string(name) + "' is not in the image's /etc/group; use a number");
    }
  }
  return user;
}

Result<User> resolve_user(std::string_view spec) {
  return parse_user(spec, read_file("/etc/passwd").value_or(""), read_file("/etc/group").value_or(""));
}

}  // namespace bsp::init
