#include "sidecar/agent/epochs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/own_file.h"
#include "crds/names.h"
#include "crds/requests.h"

namespace bsp::sidecar {
namespace {

constexpr std::chrono::seconds kPeerTimeout{5};

bool same_plan(const wire::EpochPlan& a, const wire::EpochPlan& b) { return nlohmann::json(a) == nlohmann::json(b); }

}  // namespace

Epochs::Epochs(net::Loop& loop, net::TlsContext context, const Config& config)
    : loop_(loop), context_(std::move(context)), config_(config) {}

Epochs::~Epochs() = default;

Result<void> Epochs::start(std::function<void(int, const std::string&)> on_abort) {
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
    peer(member.pod, member.address)
        .call(wire::kModex, reflect::write(wire::ModexRequest{entry->plan.epoch, rank}), {}, kPeerTimeout,
              [done = std::move(done)](Result<net::Answer> answer) mutable {
                done(answer ? Result<std::string>(std::move(answer->body)) : std::unexpected(answer.error()));
              });
  };
  upcalls.aborted = [on_abort = std::move(on_abort)](const std::string&, int status, const std::string& message) {
    on_abort(status, message);
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
  if (opened_ && plan.epoch <= *opened_) {
    // A repeated request has no effect; an older epoch is refused.
    if (auto it = entries_.find(plan.epoch); it != entries_.end() && same_plan(it->second.plan, plan)) return {};
    return fail(ErrorCode::kConflict,
                std::format("epoch {} is open, so epoch {} can no longer be prepared", *opened_, plan.epoch));
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
  BSP_CHECK_OK(
      server_->register_namespace(plan.pmix_namespace, config_.rank, static_cast<std::uint32_t>(plan.members.size())));
  std::uint64_t epoch = plan.epoch;
  // Collectives of all ranks go through rank 0, so its connections are made now, before the ranks wait for them.
  for (const wire::Member& member : plan.members)
    if (member.rank != config_.rank && (config_.rank == 0 || member.rank == 0))
      peer(member.pod, member.address).connect();
  auto send = [this, epoch](std::uint32_t rank, std::string_view verb, nlohmann::json fields, std::string body,
                            net::LinkPeer::Done done) {
    auto it = entries_.find(epoch);
    if (it == entries_.end()) return done(fail(ErrorCode::kRefused, "the epoch is over"));
    const wire::Member& member = it->second.plan.members.at(rank);
    peer(member.pod, member.address).call(verb, std::move(fields), std::move(body), kPeerTimeout, std::move(done));
  };
  auto all_gather = std::make_unique<pmix::AllGather>(loop_, epoch, config_.rank,
                                                      static_cast<std::uint32_t>(plan.members.size()), std::move(send));
  entries_.insert_or_assign(epoch, Entry{std::move(plan), std::move(all_gather)});
  return {};
}

Result<bool> Epochs::open(std::uint64_t epoch, uid_t uid, gid_t gid) {
  fault_point("epoch.open");
  if (opened_ && epoch < *opened_)
    return fail(ErrorCode::kConflict, std::format("epoch {} is open, so epoch {} is over", *opened_, epoch));
  if (opened_ && epoch == *opened_) return false;
  // Whoever has prepared a later epoch relies on this one never being opened here, though its openEpoch may still be
  // in flight.
  if (const std::uint64_t later = highest_prepared(); later > epoch)
    return fail(ErrorCode::kConflict, std::format("epoch {} has been prepared, so epoch {} is over", later, epoch));
  auto it = entries_.find(epoch);
  if (it == entries_.end()) return fail(ErrorCode::kNotFound, std::format("epoch {} is not prepared", epoch));
  const wire::EpochPlan& plan = it->second.plan;
  // The one rule that keeps a single copy of a rank running: only the pod that its epoch names may continue it.
  if (plan.members[config_.rank].pod != config_.pod)
    return fail(ErrorCode::kRefused,
                std::format("epoch {} gives rank {} to pod {}", epoch, config_.rank, plan.members[config_.rank].pod));
  BSP_TRY(auto environment, server_->register_client(plan.pmix_namespace, config_.rank, uid, gid));
  BSP_CHECK_OK(write_descriptor(plan, environment));
  opened_ = epoch;
  // The program has closed its last epoch, so no collective of an older one is pending. Deregistering takes PMIx a
  // while, and the program needn't wait for it.
  loop_.post([this] { forget_past(); });
  fault_point("epoch.opened");
  return true;
}

Result<void> Epochs::renew(uid_t uid, gid_t gid) {
  auto it = opened_ ? entries_.find(*opened_) : entries_.end();
  if (it == entries_.end()) return {};
  const wire::EpochPlan& plan = it->second.plan;
  BSP_TRY(auto environment, server_->register_client(plan.pmix_namespace, config_.rank, uid, gid));
  return write_descriptor(plan, environment);
}

Result<void> Epochs::write_descriptor(const wire::EpochPlan& plan, const std::vector<std::string>& pmix) {
  std::string sets;
  for (const wire::Member& member : plan.members) sets += std::format("{}{}", member.rank ? "," : "", member.set);
  std::string text = std::format("{}={}\n{}={}\n{}={}\n{}={}\n", names::kEpochNumber, plan.epoch, names::kEpochRank,
                                 config_.rank, names::kEpochRanks, plan.members.size(), names::kEpochRankSets, sets);
  for (const std::string& variable : pmix) text += variable + "\n";
  return replace_own_file(config_.path("epoch"), text, 0644);
}

void Epochs::forget(std::uint64_t epoch) {
  auto node = entries_.extract(epoch);
  if (node.empty()) return;
  node.mapped().all_gather.reset();  // answers what is pending before the namespace goes
  server_->forget(node.mapped().plan.pmix_namespace, config_.rank);
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

bool Epochs::is_past(std::uint64_t epoch) const { return epoch != opened_ && epoch != highest_prepared(); }

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

Result<std::uint32_t> Epochs::rank_of(std::uint64_t epoch, const std::string& pod) const {
  auto it = entries_.find(epoch);
  if (it == entries_.end()) return fail(ErrorCode::kNotFound, std::format("epoch {} is not known", epoch));
  for (const wire::Member& member : it->second.plan.members)
    if (member.pod == pod) return member.rank;
  return fail(ErrorCode::kRefused, std::format("pod {} is not in epoch {}", pod, epoch));
}

std::uint64_t Epochs::highest_prepared() const { return entries_.empty() ? 0 : entries_.rbegin()->first; }

Result<pmix::AllGather*> Epochs::all_gather(std::uint64_t epoch) {
  auto it = entries_.find(epoch);
  if (it != entries_.end()) return it->second.all_gather.get();
  if (opened_ && epoch < *opened_) return fail(ErrorCode::kRefused, std::format("epoch {} is over", epoch));
  return fail(ErrorCode::kNotFound, std::format("epoch {} is not prepared here", epoch), true);
}

void Epochs::published(std::uint64_t epoch, std::uint32_t rank, pmix::Server::FetchDone done) {
  auto it = entries_.find(epoch);
  if (it == entries_.end() || rank != config_.rank)
    return done(fail(ErrorCode::kNotFound, std::format("rank {} of epoch {} is not here", rank, epoch)));
  server_->published(it->second.plan.pmix_namespace, rank, std::move(done));
}

const wire::EpochPlan* Epochs::open_plan() const {
  const auto it = opened_ ? entries_.find(*opened_) : entries_.end();
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

void Epochs::adopt(std::vector<wire::EpochPlan> plans, std::optional<std::uint64_t> opened) {
  for (wire::EpochPlan& plan : plans) {
    std::uint64_t epoch = plan.epoch;
    if (auto added = add(std::move(plan)); !added)
      log_warning("cannot adopt a saved epoch", {{"epoch", epoch}, {"reason", added.error().message}});
  }
  opened_ = opened;
}

}  // namespace bsp::sidecar
