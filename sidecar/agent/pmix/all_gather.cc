#include "sidecar/agent/pmix/all_gather.h"

#include <algorithm>
#include <charconv>
#include <numeric>

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

// Whether a retry can help: the sidecar may be restarting. A refusal is final.
bool may_recover(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
         error.code == ErrorCode::kNotFound;
}

net::SteadyTime now() { return std::chrono::steady_clock::now(); }

}  // namespace

AllGather::AllGather(net::Loop& loop, std::uint64_t epoch, std::uint32_t rank, std::uint32_t size, Send send)
    : loop_(loop), epoch_(epoch), rank_(rank), size_(size), send_(std::move(send)) {
  timer_ = loop_.after(kCheckInterval, [this] { check_silent_members(); });
}

AllGather::~AllGather() {
  *alive_ = false;
  loop_.cancel(timer_);
  abandon({ErrorCode::kUnavailable, "the epoch was abandoned"});
}

void AllGather::enter(std::string key, std::vector<std::uint32_t> members, std::string data, Server::GatherDone done) {
  if (abandoned_) return done(std::unexpected(*abandoned_));
  if (members.empty()) {
    members.resize(size_);
    std::iota(members.begin(), members.end(), 0u);
  }
  if (members.back() >= size_ || !std::ranges::binary_search(members, rank_))
    return done(fail(ErrorCode::kInvalid, "a collective without this rank"));
  if (data.size() > max_part())
    return done(fail(ErrorCode::kInvalid,
                     std::format("{} bytes of one rank for a collective of {} ranks exceed the limit of {}",
                                 data.size(), size_, max_part())));
  // Every member calls the same operation with the same members in the same order, so the count makes each key
  // unique.
  if (members.size() != size_)
    for (std::uint32_t m : members) key += std::format(".{}", m);
  key += std::format("#{}", entered_count_[key]++);

  if (std::erase(failed_early_, key) > 0) return done(fail(ErrorCode::kUnavailable, "another member has given up"));
  for (std::uint32_t m : members)
    if (auto gone = lost_.find(m); gone != lost_.end()) return done(std::unexpected(gone->second));
  Pending& pending = pending_[key];
  pending.entered = true;
  pending.members = std::move(members);
  pending.done = std::move(done);
  std::uint32_t root = pending.members.front();
  // Members keep theirs too, to resend it to a restarted root.
  held_ += data.size();
  pending.parts[rank_] = std::move(data);
  if (root == rank_)
    complete_if_all_arrived(key);
  else
    send_part(key, root, pending.parts[rank_]);
}

// All parts together must fit into the message to each member.
std::size_t AllGather::max_part() const { return std::min(kMaxPart, kMaxTotal / std::max(size_, 1u)); }

void AllGather::send_part(const std::string& key, std::uint32_t root, const std::string& data) {
  send_(root, wire::kGather, {{"epoch", epoch_}, {"key", key}, {"rank", rank_}}, data,
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
  // Another rank's sidecar forwards this for its program: neither may make this one hold more than an honest one
  // would.
  if (from >= size_ || key.size() > kMaxKey || data.size() > max_part())
    return fail(ErrorCode::kInvalid, std::format("a part of {} bytes is too large", data.size()));
  if (!pending_.contains(key) && pending_.size() >= kMaxPending)
    return fail(ErrorCode::kInvalid, std::format("{} collectives are pending", pending_.size()));
  Pending& pending = pending_[key];
  pending.silent_since.erase(from);
  if (!pending.entered && held_ + data.size() > 2 * kMaxTotal)
    return fail(ErrorCode::kInvalid, "too much data for collectives that this rank has not entered yet");
  const std::size_t size = data.size();
  if (pending.parts.try_emplace(from, std::move(data)).second) held_ += size;
  complete_if_all_arrived(key);
  return {};
}

void AllGather::complete_if_all_arrived(const std::string& key) {
  Pending& pending = pending_.at(key);
  if (!pending.entered) return;
  for (std::uint32_t member : pending.members)
    if (!pending.parts.contains(member)) return;
  Gathered all;
  for (std::uint32_t member : pending.members) all.data += pending.parts.at(member);
  all.context_id = static_cast<std::uint64_t>(rank_ + 1) << 32 | ++last_context_;
  for (std::uint32_t member : pending.members)
    if (member != rank_) send_result(member, key, all, now() + kMemberTimeout);
  finish(key, std::move(all));
}

void AllGather::send_result(std::uint32_t to, const std::string& key, const Result<Gathered>& all,
                            net::SteadyTime deadline) {
  nlohmann::json fields{{"epoch", epoch_}, {"key", key}};
  if (all)
    fields["context_id"] = all->context_id;
  else
    fields["failure"] = all.error().message;
  send_(to, wire::kDeliver, std::move(fields), all ? all->data : std::string(),
        [this, alive = alive_, to, key, all, deadline](Result<net::Answer> answer) {
          if (!*alive || answer || !may_recover(answer.error()) || now() > deadline) return;
          // If it never comes it fails by itself: it asks this sidecar about the collective and gets no answer.
          loop_.after(kRetry, [this, alive, to, key, all, deadline] {
            if (*alive) send_result(to, key, all, deadline);
          });
        });
}

Result<void> AllGather::deliver(const std::string& key, Result<Gathered> all) {
  if (has_ended(key)) return {};
  finish(key, std::move(all));
  return {};
}

void AllGather::finish(const std::string& key, Result<Gathered> all) {
  auto node = pending_.extract(key);
  if ((node.empty() || !node.mapped().entered) && key.size() <= kMaxKey) {
    if (failed_early_.size() == kFailedEarly) failed_early_.pop_front();
    failed_early_.push_back(key);
  }
  if (!node.empty())
    for (const auto& [rank, part] : node.mapped().parts) held_ -= part.size();
  if (node.empty() || !node.mapped().done) return;
  node.mapped().done(std::move(all));
}

void AllGather::fail_at_all_members(const std::string& key, const Error& why) {
  Pending& pending = pending_.at(key);
  if (pending.entered && pending.members.front() == rank_)
    for (std::uint32_t member : pending.members)
      if (member != rank_) send_result(member, key, std::unexpected(why), now() + kMemberTimeout);
  finish(key, std::unexpected(why));
}

void AllGather::heard(const std::string& key, std::uint32_t rank, const Result<net::Answer>& answer) {
  auto it = pending_.find(key);
  if (it == pending_.end()) return;
  Pending& pending = it->second;
  if (answer) {
    pending.silent_since.erase(rank);
    return;
  }
  auto [since, first] = pending.silent_since.try_emplace(rank, now());
  bool is_root = pending.members.front() == rank_;
  if (!may_recover(answer.error()) || now() - since->second > kMemberTimeout) {
    Error why = answer.error().in(std::format("waiting for rank {}", rank));
    lost_.insert_or_assign(rank, why);
    return fail_at_all_members(key, why);
  }
  if (!is_root)
    loop_.after(kRetry, [this, alive = alive_, key, rank] {
      if (!*alive) return;
      if (auto again = pending_.find(key); again != pending_.end()) send_part(key, rank, again->second.parts.at(rank_));
    });
}

void AllGather::check_silent_members() {
  timer_ = loop_.after(kCheckInterval, [this] { check_silent_members(); });
  std::vector<std::pair<std::string, std::uint32_t>> silent;
  for (const auto& [key, pending] : pending_) {
    if (!pending.entered) continue;
    if (std::uint32_t root = pending.members.front(); root != rank_) {
      if (!pending.silent_since.contains(root)) silent.emplace_back(key, root);
      continue;
    }
    for (std::uint32_t member : pending.members)
      if (!pending.parts.contains(member)) silent.emplace_back(key, member);
  }
  for (const auto& [key, rank] : silent)
    send_(rank, wire::kPing, {{"epoch", epoch_}}, {}, [this, alive = alive_, key, rank](Result<net::Answer> answer) {
      if (*alive) heard(key, rank, answer);
    });
}

void AllGather::abandon(const Error& why) {
  abandoned_ = why;
  held_ = 0;
  for (auto& [key, pending] : std::exchange(pending_, {}))
    if (pending.done) pending.done(std::unexpected(why));
}

}  // namespace bsp::pmix
