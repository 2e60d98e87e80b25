#include "sidecar/agent/epochs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/own_file.h"
#include "crds/names.h"
#include "crds/requests.h"
#include "sidecar/agent/fence.h"

namespace bsp::sidecar {
namespace {

constexpr std::chrono::seconds kPeerTimeout{5};

pmix::Placement placement_of(const wire::EpochPlan& plan) {
  pmix::Placement placement;
  std::map<std::string_view, std::uint32_t> lowest;  // members are in the order of their ranks
  for (const wire::Member& member : plan.members)
    placement.server_of.push_back(lowest.try_emplace(member.pod, member.rank).first->second);
  return placement;
}

bool same_plan(const wire::EpochPlan& a, const wire::EpochPlan& b) { return nlohmann::json(a) == nlohmann::json(b); }

}  // namespace

Epochs::Epochs(net::Loop& loop, net::TlsContext context, const Config& config)
    : loop_(loop),
      context_(std::move(context)),
      config_(config),
      followed_(config.own_path("token")),
      opened_(config.seats.size()) {}

Epochs::~Epochs() = default;

Result<void> Epochs::start(OnAbort on_abort) {
  pmix::Server::Upcalls upcalls;
  upcalls.all_gather = [this](pmix::Collective collective, pmix::Server::GatherDone done) {
    Entry* entry = find(collective.name_space);
    if (!entry) return done(fail(ErrorCode::kNotFound, "the epoch is over"));
    entry->all_gather->enter(std::move(collective.key), std::move(collective.members), std::move(collective.data),
                             std::move(done));
  };
  upcalls.fetch = [this](const std::string& name_space, std::uint32_t rank, pmix::Server::FetchDone done) {
    Entry* entry = find(name_space);
    if (!entry || rank >= entry->plan.members.size()) return done(fail(ErrorCode::kNotFound, "the epoch is over"));
    const wire::Member& member = entry->plan.members[rank];
    if (member.pod == config_.pod) return published(entry->plan.epoch, rank, std::move(done));
    peer(member.pod, member.address)
        .call(wire::kModex, reflect::write(wire::ModexRequest{entry->plan.epoch, rank}), {}, kPeerTimeout,
              [done = std::move(done)](Result<net::Answer> answer) mutable {
                done(answer ? Result<std::string>(std::move(answer->body)) : std::unexpected(answer.error()));
              });
  };
  upcalls.aborted = [this, on_abort = std::move(on_abort)](const std::string& name_space, std::uint32_t rank,
                                                           int status, const std::string& message) {
    const Entry* entry = find(name_space);
    if (entry && rank < entry->plan.members.size() && entry->plan.members[rank].pod == config_.pod)
      on_abort(entry->plan.members[rank].seat, status, message);
  };
  BSP_TRY(server_, pmix::Server::start(loop_, config_.path("pmix"), std::move(upcalls)));
  return {};
}

Epochs::Entry* Epochs::find(const std::string& name_space) {
  for (auto& [epoch, entry] : entries_)
    if (entry.plan.pmix_namespace == name_space) return &entry;
  return nullptr;
}

Result<void> Epochs::prepare(wire::EpochPlan plan) {
  fault_point("epoch.prepare");
  if (plan.members.size() != config_.ranks)
    return fail(ErrorCode::kInvalid, std::format("epoch {} has {} members, the job has {} ranks", plan.epoch,
                                                 plan.members.size(), config_.ranks));
  for (const wire::Member& member : plan.members)
    if (member.pod == config_.pod && member.seat >= config_.seats.size())
      return fail(ErrorCode::kInvalid,
                  std::format("epoch {} gives rank {} to seat {} of pod {}, which has {}", plan.epoch, member.rank,
                              member.seat, config_.pod, config_.seats.size()));
  if (const auto open = opened(); open && plan.epoch <= *open) {
    // A repeated request has no effect; an older epoch is refused.
    if (auto it = entries_.find(plan.epoch); it != entries_.end() && same_plan(it->second.plan, plan)) return {};
    return fail(ErrorCode::kConflict,
                std::format("epoch {} is open, so epoch {} can no longer be prepared", *open, plan.epoch));
  }
  if (auto it = entries_.find(plan.epoch); it != entries_.end()) {
    if (same_plan(it->second.plan, plan)) return {};
    forget(plan.epoch);  // planned again before it was opened
  }
  BSP_CHECK_OK(add(std::move(plan)));
  loop_.post([this] { forget_past(); });
  fault_point("epoch.prepared");
  return {};
}

Result<void> Epochs::add(wire::EpochPlan plan) {
  const pmix::Placement placement = placement_of(plan);
  Entry entry;
  for (const wire::Member& member : plan.members)
    if (member.pod == config_.pod) entry.local.push_back(member.rank);
  // A pod that no rank is given to only learns that its own epoch is over.
  const std::uint32_t server = entry.local.empty() ? placement.size() : entry.local.front();
  if (!entry.local.empty()) BSP_CHECK_OK(server_->register_namespace(plan.pmix_namespace, placement, server));
  std::uint64_t epoch = plan.epoch;
  // Collectives of all ranks go through rank 0's pod, so its connections are made now, before the ranks wait for them.
  const bool is_root = has_rank_zero(&plan, config_.pod);
  for (const wire::Member& member : plan.members)
    if (member.pod != config_.pod && (is_root || member.rank == 0)) peer(member.pod, member.address).connect();
  auto send = [this, epoch](std::uint32_t to, std::string_view verb, nlohmann::json fields, std::string body,
                            net::LinkPeer::Done done) {
    auto it = entries_.find(epoch);
    if (it == entries_.end()) return done(fail(ErrorCode::kRefused, "the epoch is over"));
    const wire::Member& member = it->second.plan.members.at(to);
    peer(member.pod, member.address).call(verb, std::move(fields), std::move(body), kPeerTimeout, std::move(done));
  };
  entry.all_gather = std::make_unique<pmix::AllGather>(loop_, epoch, placement, server, std::move(send));
  entry.plan = std::move(plan);
  entries_.insert_or_assign(epoch, std::move(entry));
  return {};
}

Result<bool> Epochs::open(std::uint64_t epoch, std::uint32_t seat, uid_t uid, gid_t gid) {
  fault_point("epoch.open");
  const auto open = opened();
  if (open && epoch < *open)
    return fail(ErrorCode::kConflict, std::format("epoch {} is open, so epoch {} is over", *open, epoch));
  if (epoch == opened_[seat]) return false;
  // Whoever has prepared a later epoch relies on this one never being opened here, though its openEpoch may still be
  // in flight.
  if (const std::uint64_t later = highest_prepared(); later > epoch)
    return fail(ErrorCode::kConflict, std::format("epoch {} has been prepared, so epoch {} is over", later, epoch));
  auto it = entries_.find(epoch);
  if (it == entries_.end()) return fail(ErrorCode::kNotFound, std::format("epoch {} is not prepared", epoch));
  // The one rule that keeps a single copy of a rank running: only the seat that its epoch names may continue it.
  const wire::EpochPlan& plan = it->second.plan;
  const auto here = std::ranges::find_if(
      plan.members, [&](const wire::Member& member) { return member.pod == config_.pod && member.seat == seat; });
  if (here == plan.members.end()) return std::unexpected(not_here(plan, seat));
  BSP_CHECK_OK(write_descriptor(it->second, here->rank, uid, gid));
  opened_[seat] = latest_ = epoch;
  // The programs have closed their last epoch, so no collective of an older one is pending. Deregistering takes PMIx a
  // while, and the programs needn't wait for it.
  loop_.post([this] { forget_past(); });
  fault_point("epoch.opened");
  return true;
}

Error Epochs::not_here(const wire::EpochPlan& plan, std::uint32_t seat) const {
  if (config_.seats.size() > 1)
    return {ErrorCode::kRefused,
            std::format("epoch {} gives no rank to seat {} of pod {}", plan.epoch, seat, config_.pod)};
  const std::uint32_t rank = config_.seats.front();
  return {ErrorCode::kRefused,
          std::format("epoch {} gives rank {} to pod {}", plan.epoch, rank, plan.members[rank].pod)};
}

Result<void> Epochs::renew(std::uint32_t seat, uid_t uid, gid_t gid) {
  auto it = opened_[seat] ? entries_.find(*opened_[seat]) : entries_.end();
  if (it == entries_.end()) return {};
  for (const wire::Member& member : it->second.plan.members)
    if (member.pod == config_.pod && member.seat == seat) return write_descriptor(it->second, member.rank, uid, gid);
  return {};
}

Result<void> Epochs::register_clients(Entry& entry, uid_t uid, gid_t gid) {
  for (const std::uint32_t rank : entry.local) {
    BSP_TRY(auto environment, server_->register_client(entry.plan.pmix_namespace, rank, uid, gid));
    entry.environments.insert_or_assign(rank, std::move(environment));
  }
  return {};
}

Result<void> Epochs::write_descriptor(Entry& entry, std::uint32_t rank, uid_t uid, gid_t gid) {
  if (!entry.environments.contains(rank)) BSP_CHECK_OK(register_clients(entry, uid, gid));
  const wire::EpochPlan& plan = entry.plan;
  std::string sets, local;
  for (const wire::Member& member : plan.members) sets += std::format("{}{}", member.rank ? "," : "", member.set);
  for (const std::uint32_t one : entry.local) local += std::format("{}{}", local.empty() ? "" : ",", one);
  std::string text =
      std::format("{}={}\n{}={}\n{}={}\n{}={}\n{}={}\n", names::kEpochNumber, plan.epoch, names::kEpochRank, rank,
                  names::kEpochRanks, plan.members.size(), names::kEpochRankSets, sets, names::kEpochLocalRanks, local);
  for (const std::string& variable : entry.environments.at(rank)) text += variable + "\n";
  return replace_own_file(config_.seat_path(plan.members[rank].seat, "epoch"), text, 0644);
}

void Epochs::forget(std::uint64_t epoch) {
  auto node = entries_.extract(epoch);
  if (node.empty()) return;
  node.mapped().all_gather.reset();  // answers what is pending before the namespace goes
  if (const Entry& entry = node.mapped(); !entry.local.empty()) server_->forget(entry.plan.pmix_namespace, entry.local);
  drop_unused_peers();
}

// No epoch before the last prepared one is opened any more (open()). Each wave that is rolled back before its commit leaves
// two: kept until some wave succeeds, those of a job that none moves would outgrow its sidecars.
void Epochs::forget_past() {
  std::vector<std::uint64_t> past;
  for (const auto& [epoch, entry] : entries_)
    if (is_past(epoch)) past.push_back(epoch);
  for (const std::uint64_t epoch : past) forget(epoch);
}

bool Epochs::is_past(std::uint64_t epoch) const { return epoch != opened() && epoch != highest_prepared(); }

void Epochs::drop_unused_peers() {
  // Posted, because the call may come from a callback of one of them.
  loop_.post([this] { std::erase_if(peers_, [this](const auto& item) { return !is_member(item.first.first); }); });
}

bool Epochs::is_member(const std::string& pod) const {
  for (const auto& [epoch, entry] : entries_)
    for (const wire::Member& member : entry.plan.members)
      if (member.pod == pod) return true;
  return false;
}

Result<std::uint32_t> Epochs::server_of(std::uint64_t epoch, const std::string& pod) const {
  auto it = entries_.find(epoch);
  if (it == entries_.end()) return fail(ErrorCode::kNotFound, std::format("epoch {} is not known", epoch));
  for (const wire::Member& member : it->second.plan.members)
    if (member.pod == pod) return member.rank;
  return fail(ErrorCode::kRefused, std::format("pod {} is not in epoch {}", pod, epoch));
}

std::optional<std::uint32_t> Epochs::rank_at(std::uint32_t seat) const {
  for (const auto& [epoch, entry] : std::views::reverse(entries_))
    for (const std::uint32_t rank : entry.local)
      if (entry.plan.members[rank].seat == seat) return rank;
  return std::nullopt;
}

std::vector<std::uint32_t> Epochs::seats_of(std::uint64_t epoch, const std::vector<std::uint32_t>& ranks) const {
  std::vector<std::uint32_t> seats;
  if (const auto it = entries_.find(epoch); it != entries_.end())
    for (const std::uint32_t rank : it->second.local)
      if (ranks.empty() || std::ranges::contains(ranks, rank)) seats.push_back(it->second.plan.members[rank].seat);
  return seats;
}

std::optional<std::uint64_t> Epochs::opened(std::uint32_t seat) const { return opened_[seat]; }

std::optional<std::uint64_t> Epochs::opened() const { return latest_; }

void Epochs::vacate(std::uint32_t seat) {
  opened_[seat].reset();
  // The next rank here must not take it for its own.
  (void)::unlink(config_.seat_path(seat, "epoch").c_str());
}

std::uint64_t Epochs::highest_prepared() const { return entries_.empty() ? 0 : entries_.rbegin()->first; }

Epochs::Parting Epochs::parting(std::uint32_t seat) const {
  Parting bits{};
  const auto now = opened_[seat] ? entries_.find(*opened_[seat]) : entries_.end();
  if (now == entries_.end() || now->first >= highest_prepared()) return bits;
  const std::vector<wire::Member>& next = entries_.rbegin()->second.plan.members;
  const std::vector<std::uint32_t>& local = now->second.local;
  const auto mine = std::ranges::find(local, seat, [&](std::uint32_t r) { return now->second.plan.members[r].seat; });
  if (mine == local.end()) return bits;
  for (std::size_t i = 0; i < local.size(); ++i)
    if (next[local[i]].pod != next[*mine].pod) bits[i / 64] |= std::uint64_t{1} << i % 64;
  return bits;
}

Result<pmix::AllGather*> Epochs::all_gather(std::uint64_t epoch) {
  auto it = entries_.find(epoch);
  if (it != entries_.end()) return it->second.all_gather.get();
  if (const auto open = opened(); open && epoch < *open)
    return fail(ErrorCode::kRefused, std::format("epoch {} is over", epoch));
  return fail(ErrorCode::kNotFound, std::format("epoch {} is not prepared here", epoch), true);
}

void Epochs::published(std::uint64_t epoch, std::uint32_t rank, pmix::Server::FetchDone done) {
  auto it = entries_.find(epoch);
  if (it == entries_.end() || !std::ranges::contains(it->second.local, rank))
    return done(fail(ErrorCode::kNotFound, std::format("rank {} of epoch {} is not here", rank, epoch)));
  server_->published(it->second.plan.pmix_namespace, rank, std::move(done));
}

const wire::EpochPlan* Epochs::open_plan() const {
  const auto open = opened();
  const auto it = open ? entries_.find(*open) : entries_.end();
  return it == entries_.end() ? nullptr : &it->second.plan;
}

net::LinkPeer& Epochs::peer(const std::string& pod, const std::string& address) {
  auto& link = peers_[{pod, address}];
  if (!link) link = std::make_unique<net::LinkPeer>(loop_, context_, net::Peer{address, pod}, wire::answer_limits);
  return *link;
}

std::vector<wire::EpochPlan> Epochs::plans() const {
  std::vector<wire::EpochPlan> plans;
  for (const auto& [epoch, entry] : entries_)
    if (!is_past(epoch)) plans.push_back(entry.plan);
  return plans;
}

void Epochs::adopt(std::vector<wire::EpochPlan> plans, std::vector<std::optional<std::uint64_t>> opened,
                   std::optional<std::uint64_t> latest) {
  for (wire::EpochPlan& plan : plans) {
    std::uint64_t epoch = plan.epoch;
    if (auto added = add(std::move(plan)); !added)
      log_warning("cannot adopt a saved epoch", {{"epoch", epoch}, {"reason", added.error().message}});
  }
  opened.resize(opened_.size());
  opened_ = std::move(opened);
  latest_ = std::max(latest, std::ranges::max(opened_));
}

}  // namespace bsp::sidecar
