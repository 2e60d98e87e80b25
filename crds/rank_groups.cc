#include "crds/rank_groups.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <optional>

#include "base/core/base64.h"
#include "base/core/counted.h"

namespace bsp::crds {
namespace {

// The ranks of one group as they come, ascending.
struct Runs {
  std::string text = {};
  std::size_t first = 0, last = 0;
  bool any = false;

  void add(std::size_t rank) {
    if (any && rank == last + 1) {
      last = rank;
      return;
    }
    finish();
    first = last = rank;
    any = true;
  }
  void finish() {
    if (!any) return;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
};

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// f(entry) for each part between commas, one for an empty text; ends early if f returns false.
void for_each_entry(std::string_view text, const auto& f) {
  for (std::size_t begin = 0;;) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    if (!f(text.substr(begin, comma - begin)) || comma == text.size()) return;
    begin = comma + 1;
  }
}

constexpr std::size_t kUuid = 36, kPackedUuid = 22;

bool is_dash(std::size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

bool is_uuid(std::string_view text) {
  if (text.size() != kUuid) return false;
  for (std::size_t i = 0; i < kUuid; ++i) {
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (is_dash(i) ? c != '-' : !digit) return false;
  }
  return true;
}

int value_of(char hex) { return hex <= '9' ? hex - '0' : hex - 'a' + 10; }

std::string pack_uid(const std::string& uid) {
  if (!is_uuid(uid)) return uid.size() == kPackedUuid || uid.starts_with('=') ? "=" + uid : uid;
  std::string bytes;
  for (std::size_t i = 0; i < kUuid; ++i) {
    if (is_dash(i)) continue;
    bytes += static_cast<char>(value_of(uid[i]) << 4 | value_of(uid[i + 1]));
    ++i;
  }
  return base64_encode(bytes).substr(0, kPackedUuid);
}

Result<std::string> unpack_uid(std::string_view entry) {
  if (entry.starts_with('=')) return std::string(entry.substr(1));
  if (entry.size() != kPackedUuid) return std::string(entry);
  BSP_TRY(const std::string bytes, base64_decode(std::string(entry) + "=="));
  std::string uid;
  for (const char byte : bytes) {
    if (is_dash(uid.size())) uid += '-';
    uid += std::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return uid;
}

struct Address {
  std::string_view host, port;  // host with its brackets, port with its colon
};
Address split(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  // Of an IPv6 address the last colon is the port's only behind its bracket.
  const bool has_port = colon != std::string_view::npos && address.find(']', colon) == std::string_view::npos;
  return has_port ? Address{address.substr(0, colon), address.substr(colon)} : Address{address, ""};
}

// "10.0.3.17" is separated by dots, "[fd00::17]" by colons. A bracket belongs to the part that it stands beside.
char separator_of(std::string_view host) { return host.starts_with('[') ? ':' : '.'; }

// `host` without what it shares with the one before, or whole if that is shorter.
std::string_view shortened(std::string_view host, std::string_view before) {
  const char separator = separator_of(host);
  if (separator_of(before) != separator || std::ranges::count(host, separator) != std::ranges::count(before, separator))
    return host;
  std::size_t shared = 0;  // up to the last separator of the common beginning
  for (std::size_t i = 0; i < std::min(host.size(), before.size()) && host[i] == before[i]; ++i)
    if (host[i] == separator) shared = i;
  return host.substr(shared);
}

std::string lengthened(std::string_view entry, std::string_view before) {
  const char separator = separator_of(before);
  if (!entry.starts_with(separator)) return std::string(entry);
  std::size_t kept = before.size();
  for (auto parts = std::ranges::count(entry, separator); parts > 0 && kept != std::string_view::npos; --parts)
    kept = kept == 0 ? std::string_view::npos : before.rfind(separator, kept - 1);
  return std::string(before.substr(0, kept == std::string_view::npos ? 0 : kept)) + std::string(entry);
}

std::unexpected<Error> wrong_count(std::size_t entries, std::size_t ranks) {
  return fail(ErrorCode::kInvalid, std::format("has {} entries for {}", entries, counted(ranks, "rank")));
}

}  // namespace

RankGroups group_ranks(std::size_t ranks, const std::function<std::string(std::size_t)>& value_of) {
  std::map<std::string, Runs> runs;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (std::string value = value_of(rank); !value.empty()) runs[std::move(value)].add(rank);
  RankGroups groups;
  for (auto& [value, of_value] : runs) {
    of_value.finish();
    groups.emplace_hint(groups.end(), value, std::move(of_value.text));
  }
  return groups;
}

std::string runs_of(std::vector<std::size_t> ranks) {
  std::ranges::sort(ranks);
  const auto twice = std::ranges::unique(ranks);
  ranks.erase(twice.begin(), twice.end());
  Runs runs;
  for (const std::size_t rank : ranks) runs.add(rank);
  runs.finish();
  return std::move(runs.text);
}

Result<void> ungroup_ranks(const RankGroups& groups, std::size_t ranks,
                           const std::function<Result<void>(std::size_t, const std::string&)>& take) {
  for (const auto& [value, text] : groups) {
    std::size_t next = 0;  // ascending, so that a short text can't mean much work
    Result<void> good;
    for_each_entry(text, [&](std::string_view run) {
      const std::size_t dash = run.find('-');
      const auto first = number_of(run.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : number_of(run.substr(dash + 1));
      if (!first || !last || *first < next || *last < *first || *last >= ranks)
        good = fail(ErrorCode::kInvalid,
                    std::format("{}: \"{}\" must be ranks below {}, ascending, such as 0-49,77", value, run, ranks));
      for (std::size_t rank = first.value_or(1); good && rank <= *last; ++rank) good = take(rank, value);
      next = last.value_or(0) + 1;
      return good.has_value();
    });
    BSP_CHECK_OK(good);
  }
  return {};
}

std::string pack_uids(const std::vector<std::string>& uids) {
  std::string text;
  for (std::size_t i = 0; i < uids.size(); ++i) text += (i == 0 ? "" : ",") + pack_uid(uids[i]);
  return text;
}

Result<std::vector<std::string>> unpack_uids(std::string_view text, std::size_t ranks) {
  std::vector<std::string> uids;
  Result<void> good;
  for_each_entry(text, [&](std::string_view entry) {
    auto uid = unpack_uid(entry);
    if (!uid) good = fail(ErrorCode::kInvalid, std::format("\"{}\" {}", entry, uid.error().message));
    if (uid) uids.push_back(std::move(*uid));
    return good && uids.size() <= ranks;
  });
  BSP_CHECK_OK(good);
  if (text.empty()) uids.resize(ranks);
  if (uids.size() != ranks) return wrong_count(uids.size(), ranks);
  return uids;
}

std::string pack_addresses(const std::vector<std::string>& addresses) {
  std::string text;
  Address before;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Address address = split(addresses[i]);
    if (i != 0) text += ',';
    text += shortened(address.host, before.host);
    // A port can be left out, but not be taken back.
    if (address.port != before.port) text += address.port.empty() ? std::string_view(":") : address.port;
    before = address;
  }
  return text;
}

Result<std::vector<std::string>> unpack_addresses(std::string_view text, std::size_t ranks) {
  std::vector<std::string> addresses;
  std::string host, port;
  for_each_entry(text, [&](std::string_view entry) {
    const Address address = split(entry);
    host = lengthened(address.host, host);
    if (!address.port.empty()) port = address.port == ":" ? std::string_view() : address.port;
    addresses.push_back(host + port);
    return addresses.size() <= ranks;
  });
  if (text.empty()) addresses.assign(ranks, "");
  if (addresses.size() != ranks) return wrong_count(addresses.size(), ranks);
  return addresses;
}

}  // namespace bsp::crds
