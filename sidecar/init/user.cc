#include "sidecar/init/user.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
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

// The groups whose line in /etc/group lists one of this uid's names.
std::set<gid_t> memberships(uid_t uid, std::string_view passwd, std::string_view group) {
  std::set<std::string_view> names;
  for (const std::string_view line : split(passwd, '\n'))
    if (const auto fields = split(line, ':'); fields.size() >= 3 && number(fields[2]) == uid) names.insert(fields[0]);
  std::set<gid_t> groups;
  for (const std::string_view line : split(group, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4 || !number(fields[2])) continue;
    const auto members = split(fields[3], ',');
    if (std::ranges::any_of(members, [&](std::string_view member) { return names.contains(member); }))
      groups.insert(*number(fields[2]));
  }
  return groups;
}

}  // namespace

std::vector<gid_t> parse_groups(std::string_view text) {
  std::vector<gid_t> groups;
  for (const std::string_view word : split(text, ' '))
    if (const auto gid = number(word)) groups.push_back(*gid);
  return groups;
}

std::string groups_text(std::span<const gid_t> groups) {
  std::string text;
  for (const gid_t gid : groups) text += (text.empty() ? "" : " ") + std::to_string(gid);
  return text;
}

std::vector<gid_t> program_groups(const User& user, std::span<const gid_t> held, std::string_view asked,
                                  std::string_view passwd, std::string_view group) {
  const std::vector<gid_t> wanted = parse_groups(asked);
  // supplementalGroupsPolicy: /etc/group does not count.
  const bool strict = std::ranges::contains(split(asked, ' '), "Strict");
  const std::set<gid_t> of_root = strict ? std::set<gid_t>{} : memberships(0, passwd, group);
  std::set<gid_t> groups{user.gid};
  for (const gid_t gid : held)
    if (user.uid == 0 || std::ranges::contains(wanted, gid) || (gid != 0 && !of_root.contains(gid))) groups.insert(gid);
  if (!strict) groups.merge(memberships(user.uid, passwd, group));
  return {groups.begin(), groups.end()};
}

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

Result<User> resolve_user(std::string_view spec, std::string_view asked_groups) {
  BSP_TRY(const std::string passwd, read_file_if_any("/etc/passwd"));
  BSP_TRY(const std::string group, read_file_if_any("/etc/group"));
  BSP_TRY(User user, parse_user(spec, passwd, group));
  user.groups = program_groups(user, own_groups(), asked_groups, passwd, group);
  return user;
}

Result<std::string> user_spec(const std::string& setting, const std::string& file) {
  return setting.empty() ? read_file_if_any(file) : setting;
}

}  // namespace bsp::init
