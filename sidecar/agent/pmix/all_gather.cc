#include "sidecar/agent/pmix/all_gather.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>
#include <utility>

#include "crds/wire.h"

namespace bsp::pmix {
namespace {

constexpr std::size_t kMaxTotal = 64u << 20;  // one message: wire::request_limits
constexpr std::size_t kMaxKey = 128 << 10;    // a key names the members of a group
constexpr std::size_t kMaxPending = 1024;
constexpr std::size_t kFailedEarly = 1024;  // beyond this the oldest is forgotten: its rank finds out by asking

constexpr std::chrono::seconds kCheckInterval{1};
constexpr std::chrono::seconds kRequestTimeout{5};
constexpr std::chrono::seconds kMemberTimeout{6};
constexpr std::chrono::milliseconds kRetry{200};
// Until a server says how far it has come: the next request on its connection waits for that.
constexpr std::chrono::seconds kSpreadLimit{2};

// Whether a retry can help: the sidecar may be restarting. A refusal is final.
bool may_recover(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kNotFound;
}

net::SteadyTime now() { return std::chrono::steady_clock::now(); }

// What a server says of those to which it was to pass something on; an older one says nothing.
std::size_t reached_of(const net::Answer& answer) {
  const auto onward = answer.header.find("onward");
  return onward != answer.header.end() && onward->is_number_unsigned() ? onward->get<std::size_t>() : 0;
}

}  // namespace

AllGather::AllGather(net::Loop& loop, std::uint64_t epoch, Placement placement, std::uint32_t server, Send send)
    : loop_(loop), epoch_(epoch), placement_(std::move(placement)), server_(server), send_(std::move(send)) {
  timer_ = loop_.after(kCheckInterval, [this] { check_silent_members(); });
}

AllGather::~AllGather() {
  *alive_ = false;
  loop_.cancel(timer_);
  abandon({ErrorCode::kUnavailable, "the epoch was abandoned"});
}

void AllGather::enter(std::string key, std::vector<std::uint32_t> members, std::string data, Server::GatherDone done) {
  if (abandoned_) return done(std::unexpected(*abandoned_));
  const std::uint32_t size = placement_.size();
  if (members.empty()) {
    members.resize(size);
    std::iota(members.begin(), members.end(), 0u);
  }
  std::vector<std::uint32_t> servers;
  if (members.back() < size)
    for (const std::uint32_t m : members) servers.push_back(placement_.server_of[m]);
  std::ranges::sort(servers);
  const auto twice = std::ranges::unique(servers);
  servers.erase(twice.begin(), twice.end());
  if (!std::ranges::binary_search(servers, server_))
    return done(fail(ErrorCode::kInvalid, "a collective without a rank of this pod"));
  if (data.size() > max_part(server_))
    return done(
        fail(ErrorCode::kInvalid, std::format("{} bytes of one pod for a collective of {} ranks exceed the limit of {}",
                                              data.size(), size, max_part(server_))));
  // Every member calls the same operation with the same members in the same order, so the count makes each key
  // unique.
  if (members.size() != size)
    for (std::uint32_t m : members) key += std::format(".{}", m);
  key += std::format("#{}", entered_count_[key]++);

  if (std::erase(failed_early_, key) > 0) return done(fail(ErrorCode::kUnavailable, "another member has given up"));
  for (const std::uint32_t server : servers)
    if (auto gone = lost_.find(server); gone != lost_.end()) return done(std::unexpected(gone->second));
  Pending& pending = pending_[key];
  pending.entered = true;
  pending.members = std::move(members);
  pending.servers = std::move(servers);
  pending.done = std::move(done);
  std::uint32_t root = pending.servers.front();
  // The others keep theirs too, to resend it to a restarted root.
  held_ += data.size();
  pending.parts[server_] = std::move(data);
  if (root == server_)
    complete_if_all_arrived(key);
  else
    send_part(key, root, pending.parts[server_]);
}

// All parts together must fit into the message to each server.
std::size_t AllGather::max_part(std::uint32_t server) const {
  const auto ranks = static_cast<std::size_t>(std::ranges::count(placement_.server_of, server));
  return ranks * std::min(kMaxPart, kMaxTotal / std::max(placement_.size(), 1u));
}

std::vector<std::uint32_t> AllGather::members_at(std::uint32_t server, const Pending& pending) const {
  std::vector<std::uint32_t> there;
  for (const std::uint32_t member : pending.members)
    if (placement_.server_of[member] == server) there.push_back(member);
  return there;
}

void AllGather::send_part(const std::string& key, std::uint32_t root, const std::string& data) {
  send_(root, wire::kGather, {{"epoch", epoch_}, {"key", key}, {"rank", server_}}, data,
        [this, alive = alive_, key, root](Result<net::Answer> answer) {
          if (*alive) heard(key, root, answer);
        });
}

// Keys of one name are entered in sequence, so their count shows which ones have been.
bool AllGather::has_ended(const std::string& key) const {
  const std::size_t mark = key.rfind('#');
  if (mark == std::string::npos) return false;
  std::uint64_t number = 0;
  const char* const end = key.data() + key.size();
  if (std::from_chars(key.data() + mark + 1, end, number).ptr != end) return false;
  const auto entered = entered_count_.find(key.substr(0, mark));
  if (entered != entered_count_.end() && number < entered->second) return !pending_.contains(key);
  return std::ranges::contains(failed_early_, key);
}

Result<void> AllGather::gather(const std::string& key, std::uint32_t from, std::string data) {
  if (abandoned_) return std::unexpected(*abandoned_);
  lost_.erase(from);
  if (has_ended(key)) return {};
  // Another pod's sidecar forwards this for its programs: neither may make this one hold more than an honest one
  // would.
  const bool is_server = from < placement_.size() && placement_.server_of[from] == from;
  if (!is_server || key.size() > kMaxKey || data.size() > max_part(from))
    return fail(ErrorCode::kInvalid, std::format("a part of {} bytes is too large", data.size()));
  if (!pending_.contains(key) && pending_.size() >= kMaxPending)
    return fail(ErrorCode::kInvalid, std::format("{} collectives are pending", pending_.size()));
  Pending& pending = pending_[key];
  pending.silent_since.erase(from);
  if (!pending.entered && held_ + data.size() > 2 * kMaxTotal)
    return fail(ErrorCode::kInvalid, "too much data for collectives that this pod has not entered yet");
  const std::size_t size = data.size();
  if (pending.parts.try_emplace(from, std::move(data)).second) held_ += size;
  complete_if_all_arrived(key);
  return {};
}

void AllGather::complete_if_all_arrived(const std::string& key) {
  Pending& pending = pending_.at(key);
  if (!pending.entered) return;
  for (const std::uint32_t server : pending.servers)
    if (!pending.parts.contains(server)) return;
  Gathered all;
  for (const std::uint32_t server : pending.servers) all.data += pending.parts.at(server);
  all.context_id = static_cast<std::uint64_t>(server_ + 1) << 32 | ++last_context_;
  send_result_to_all(pending.servers, key, std::make_shared<const Result<Gathered>>(all));
  finish(key, std::move(all));
}

namespace {
// Each share's first server passes it on to the rest of the share.
std::vector<std::vector<std::uint32_t>> shares_of(std::span<const std::uint32_t> servers) {
  std::vector<std::vector<std::uint32_t>> shares;
  for (std::size_t left = AllGather::kFanOut; !servers.empty(); --left) {
    const std::size_t size = (servers.size() + left - 1) / left;
    shares.emplace_back(servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(size));
    servers = servers.subspan(size);
  }
  return shares;
}
}  // namespace

void AllGather::send_result_to_all(const std::vector<std::uint32_t>& servers, const std::string& key,
                                   const Whole& all) {
  std::vector<std::uint32_t> others = servers;
  std::erase(others, server_);
  for (std::vector<std::uint32_t>& share : shares_of(others)) {
    const std::uint32_t first = share.front();
    share.erase(share.begin());
    send_result(first, std::move(share), key, all, now() + kMemberTimeout);
  }
}

void AllGather::ask_to_deliver(std::uint32_t to, const std::vector<std::uint32_t>& onward, const std::string& key,
                               const Whole& all, net::LinkPeer::Done done) {
  nlohmann::json fields{{"epoch", epoch_}, {"key", key}};
  if (!onward.empty()) fields["onward"] = onward;
  if (*all)
    fields["context_id"] = (*all)->context_id;
  else
    fields["failure"] = all->error().message;
  send_(to, wire::kDeliver, std::move(fields), *all ? (*all)->data : std::string(), std::move(done));
}

void AllGather::send_result(std::uint32_t to, std::vector<std::uint32_t> onward, const std::string& key,
                            const Whole& all, net::SteadyTime deadline) {
  ask_to_deliver(to, onward, key, all,
                 [this, alive = alive_, to, onward, key, all, deadline](Result<net::Answer> answer) {
                   if (!*alive) return;
                   if (!answer || reached_of(*answer) < onward.size())
                     for (const std::uint32_t server : onward) send_result(server, {}, key, all, deadline);
                   if (answer || !may_recover(answer.error()) || now() > deadline) return;
                   // If it never comes it fails by itself: it asks this sidecar about the collective and gets no answer.
                   loop_.after(kRetry, [this, alive, to, key, all, deadline] {
                     if (*alive) send_result(to, {}, key, all, deadline);
                   });
                 });
}

void AllGather::deliver(const std::string& key, Result<Gathered> all, const std::vector<std::uint32_t>& onward,
                        Spread done) {
  struct Spreading {
    Spread done;
    std::size_t left = 1;  // this function, because answers may come while it asks
    std::uint64_t reached = 0;
    void end_one() {
      if (--left == 0) end();
    }
    void end() {
      if (auto once = std::exchange(done, Spread())) once(reached);
    }
  };
  const auto spreading = std::make_shared<Spreading>(std::move(done));
  const auto whole = std::make_shared<const Result<Gathered>>(std::move(all));
  std::vector<std::uint32_t> servers = onward;
  std::erase_if(servers, [&](std::uint32_t server) {
    return server == server_ || server >= placement_.size() || placement_.server_of[server] != server;
  });
  for (std::vector<std::uint32_t>& share : shares_of(servers)) {
    const std::uint32_t first = share.front();
    share.erase(share.begin());
    ++spreading->left;
    ask_to_deliver(first, share, key, whole, [spreading, size = share.size()](const Result<net::Answer>& answer) {
      if (answer) spreading->reached += 1 + std::min(size, reached_of(*answer));
      spreading->end_one();
    });
  }
  if (!has_ended(key)) finish(key, *whole);
  spreading->end_one();
  if (spreading->done) loop_.after(kSpreadLimit, [spreading] { spreading->end(); });
}

void AllGather::finish(const std::string& key, Result<Gathered> all) {
  auto node = pending_.extract(key);
  if ((node.empty() || !node.mapped().entered) && key.size() <= kMaxKey) {
    if (failed_early_.size() == kFailedEarly) failed_early_.pop_front();
    failed_early_.push_back(key);
  }
  if (!node.empty())
    for (const auto& [server, part] : node.mapped().parts) held_ -= part.size();
  if (node.empty() || !node.mapped().done) return;
  node.mapped().done(std::move(all));
}

void AllGather::fail_at_all_members(const std::string& key, const Error& why) {
  Pending& pending = pending_.at(key);
  if (pending.entered && pending.servers.front() == server_)
    send_result_to_all(pending.servers, key, std::make_shared<const Result<Gathered>>(std::unexpected(why)));
  finish(key, std::unexpected(why));
}

void AllGather::heard(const std::string& key, std::uint32_t server, const Result<net::Answer>& answer) {
  auto it = pending_.find(key);
  if (it == pending_.end()) return;
  Pending& pending = it->second;
  if (answer) {
    pending.silent_since.erase(server);
    return;
  }
  auto [since, first] = pending.silent_since.try_emplace(server, now());
  bool is_root = pending.servers.front() == server_;
  if (!may_recover(answer.error()) || now() - since->second > kMemberTimeout) {
    Error why = answer.error().in(std::format("waiting for rank {}", server));
    lost_.insert_or_assign(server, why);
    return fail_at_all_members(key, why);
  }
  if (!is_root)
    loop_.after(kRetry, [this, alive = alive_, key, server] {
      if (!*alive) return;
      if (auto again = pending_.find(key); again != pending_.end())
        send_part(key, server, again->second.parts.at(server_));
    });
}

void AllGather::check_silent_members() {
  timer_ = loop_.after(kCheckInterval, [this] { check_silent_members(); });
  struct Silent {
    std::string key;
    std::uint32_t server;
    std::vector<std::uint32_t> members;
  };
  std::vector<Silent> silent;
  for (const auto& [key, pending] : pending_) {
    if (!pending.entered) continue;
    const auto add = [&](std::uint32_t server) { silent.push_back({key, server, members_at(server, pending)}); };
    if (std::uint32_t root = pending.servers.front(); root != server_) {
      if (!pending.silent_since.contains(root)) add(root);
      continue;
    }
    for (const std::uint32_t server : pending.servers)
      if (!pending.parts.contains(server)) add(server);
  }
  for (const auto& [key, server, members] : silent)
    send_(server, wire::kPing, {{"epoch", epoch_}, {"ranks", members}}, {},
          [this, alive = alive_, key, server](Result<net::Answer> answer) {
            if (*alive) heard(key, server, answer);
          });
}

void AllGather::abandon(const Error& why) {
  abandoned_ = why;
  held_ = 0;
  for (auto& [key, pending] : std::exchange(pending_, {}))
    if (pending.done) pending.done(std::unexpected(why));
}

}  // namespace bsp::pmix
