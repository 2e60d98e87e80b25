// The verbs of crds/wire.h: a table of name, who may ask, and handler.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/requests.h"
#include "sidecar/agent/collect/set_manager.h"
#include "sidecar/agent/gate.h"
#include "sidecar/agent/sidecar.h"

namespace bsp::sidecar {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kMaxWatch{30};
constexpr std::chrono::seconds kMemberTimeout{1};

// Answers {} if the Result<void> is a success.
Result<json> nothing(Result<void> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return json::object();
}

}  // namespace

// For handlers that can answer at once.
template <auto function>
void Sidecar::at_once(net::Request& request, net::Reply reply) {
  reply.result((this->*function)(request));
}

// The same for handlers that may change the status or the ring's poll interval.
template <auto function>
void Sidecar::changing(net::Request& request, net::Reply reply) {
  Result<json> answer = (this->*function)(request);
  refresh();
  reply.result(std::move(answer));
}

std::span<const Sidecar::Verb> Sidecar::verbs() {
  using S = Sidecar;
  static constexpr Verb kVerbs[] = {
      {wire::kStatus, kOperator, &S::at_once<&S::status>},
      {wire::kWatch, kOperator, &S::watch},
      {wire::kPrepareEpoch, kOperator, &S::changing<&S::prepare_epoch>},
      {wire::kOpenEpoch, kOperator, &S::changing<&S::open_epoch>},
      {wire::kArmGate, kOperator, &S::changing<&S::arm_gate>},
      {wire::kCommitGate, kOperator, &S::changing<&S::commit_gate>},
      {wire::kCancelGate, kOperator, &S::changing<&S::cancel_gate>},
      {wire::kReceive, kOperator, &S::changing<&S::receive>},
      {wire::kSend, kOperator, &S::changing<&S::send_checkpoint>},
      {wire::kRestore, kOperator, &S::changing<&S::restore>},
      {wire::kDiscard, kOperator, &S::discard},
      {wire::kKill, kOperator, &S::changing<&S::kill>},
      {wire::kReport, kOperator | kMembers, &S::at_once<&S::report>},
      {wire::kSetReport, kOperator, &S::set_report},
      {fencing::kHears, kOperator, &S::probe_ranks},
      {fencing::kAlive, kMembers, &S::at_once<&S::alive>},
      {wire::kGather, kMembers, &S::at_once<&S::take_part>},
      {wire::kDeliver, kMembers, &S::at_once<&S::deliver>},
      {wire::kPing, kMembers, &S::at_once<&S::ping>},
      {wire::kModex, kMembers, &S::modex},
      {wire::kCheckpoint, kAnnounced, &S::checkpoint},
  };
  return kVerbs;
}

bool Sidecar::is_allowed(const Verb& verb, const std::string& peer) const {
  if (peer == names::kOperatorIdentity) return (verb.allowed & kOperator) != 0;
  return (verb.allowed & kAnnounced) != 0 || ((verb.allowed & kMembers) != 0 && epochs_.is_member(peer));
}

void Sidecar::handle(net::Request request, net::Reply reply) {
  if (request.peer == names::kOperatorIdentity) {
    fence_->operator_spoke();
    if (bye_ != 0) dismiss_init();
  }
  const auto verb = std::ranges::find(verbs(), request.verb, &Verb::name);
  if (verb == verbs().end())
    return reply.error({ErrorCode::kInvalid, std::format("unknown verb \"{}\"", request.verb)});
  if (is_allowed(*verb, request.peer)) return (this->*verb->handle)(request, std::move(reply));
  log_warning("refused a request", {{"verb", request.verb}, {"peer", request.peer}});
  reply.error({ErrorCode::kRefused, std::format("{} is not allowed to send {}", request.peer, request.verb)});
}

Result<json> Sidecar::status(const net::Request&) {
  refresh();
  return json(status_);
}

Result<json> Sidecar::arm_gate(const net::Request& request) {
  BSP_TRY(const auto gate, wire::read_request<wire::GateRequest>(request.fields));
  if (program_.exited()) return fail(ErrorCode::kRefused, "the program has ended");
  if (!ring_.intact()) return fail(ErrorCode::kRefused, "the program has damaged its ring");
  BSP_TRY(Armed armed, sidecar::arm_gate(*ring_, gate.superstep));
  return reflect::write(wire::ArmAnswer{armed.completed, armed.late});
}

Result<json> Sidecar::cancel_gate(const net::Request& request) {
  const auto gate = wire::read_request<wire::GateRequest>(request.fields);
  sidecar::cancel_gate(*ring_, gate ? gate->superstep : 0);
  return json::object();
}

Result<json> Sidecar::receive(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::ReceiveRequest>(request.fields));
  return nothing(transfers_.receive(asked.migration, asked.from_pod, asked.restore));
}

Result<json> Sidecar::restore(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::MigrationRequest>(request.fields));
  return nothing(transfers_.restore(asked.migration));
}

void Sidecar::discard(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::MigrationRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  transfers_.discard(asked->migration, continued(), std::move(reply));
}

Result<json> Sidecar::kill(const net::Request&) {
  if (program_.exited()) return json::object();
  return nothing(control_->send(control::Kill{}));
}

void Sidecar::watch(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::WatchRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  refresh();
  if (status_.version != asked->version) return reply.ok(status_);
  auto wait = std::min<std::chrono::milliseconds>(
      std::chrono::milliseconds(std::min<std::uint64_t>(asked->wait_ms, 3'600'000)), kMaxWatch);
  std::uint64_t id = next_watcher_++;
  auto timer = loop_.after(wait, [this, id] {
    auto node = watchers_.extract(id);
    if (!node.empty()) node.mapped().reply.ok(status_);
  });
  watchers_.emplace(id, Watcher{std::move(reply), timer});
}

Result<json> Sidecar::prepare_epoch(const net::Request& request) {
  BSP_TRY(wire::EpochPlan plan, wire::epoch_plan_from_json(request.fields));
  BSP_CHECK_OK(epochs_.prepare(std::move(plan)));
  save();
  return json::object();
}

Result<json> Sidecar::open_epoch(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::EpochRequest>(request.fields));
  // PMIx rejects a client of another user than it was opened for, and Open MPI then waits for ever.
  if (!program_.uid && !config_.without_init)
    return fail(ErrorCode::kUnavailable, "bsp-init has not connected yet, so the program's user is unknown", true);
  BSP_TRY(bool fresh, epochs_.open(asked.epoch, program_.uid.value_or(::getuid()), program_.gid.value_or(::getgid())));
  if (benchmark_) benchmark_->stop();  // the program is about to compute
  if (fresh) {
    clear_gate(*ring_);  // it has served its purpose; left set, it would close the new epoch at once
    save();
  }
  continue_if_due();
  fault_point("epoch.continued");
  return json::object();
}

Result<json> Sidecar::commit_gate(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::CommitRequest>(request.fields));
  std::optional<Order> order;
  if (const auto& send = asked.send) order = Order{asked.superstep, send->migration, {send->to_address, send->to_pod}};
  BSP_CHECK_OK(sidecar::commit_gate(*ring_, asked.superstep));
  order_ = std::move(order);
  if (order_) transfers_.connect_early(order_->target);
  send_if_ordered();
  return json::object();
}

Result<json> Sidecar::send_checkpoint(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::SendRequest>(request.fields));
  bool sending =
      transfers_.status().migration == asked.migration && (transfers_.status().phase == wire::TransferPhase::kDumping ||
                                                           transfers_.status().phase == wire::TransferPhase::kSent);
  if (!sending && !program_.stopped_at_gate(*ring_))
    return fail(ErrorCode::kConflict,
                std::format("the program is {}, not stopped at a gate", to_string(phase_of(program_, *ring_))));
  if (!program_.init_connected) return fail(ErrorCode::kUnavailable, "bsp-init is not connected", true);
  return nothing(transfers_.send(asked.migration, {asked.to_address, asked.to_pod}));
}

void Sidecar::set_report(net::Request& request, net::Reply reply) {
  const json& fields = request.fields;
  auto members = collect::members_from_json(fields);
  if (!members) return reply.error(members.error());
  auto shared = std::make_shared<net::Reply>(std::move(reply));
  const auto most = count_at<std::size_t>(fields, "max_bytes");
  const auto every = count_at<std::uint64_t>(fields, "every");
  collect::collect_set(
      *members,
      {.most_bytes = most > 0 ? std::min(most, wire::kUnpagedReports) : wire::kUnpagedReports, .every = every},
      [this](const collect::SetMember& member) { return &epochs_.peer(member.pod, member.address); },
      [this, every](std::uint64_t since) { return collect::make_report(*ring_, config_.rank, since, every); },
      config_.rank, kMemberTimeout,
      [shared](collect::SetReport report) {
        json reports = json::array();
        for (auto& [rank, one] : report.reports) reports.push_back(std::move(one));
        shared->ok({{"reports", std::move(reports)}, {"missing", report.missing}});
      });
}

// For an operator that can't reach them itself.
void Sidecar::probe_ranks(net::Request& request, net::Reply reply) {
  struct Asked {
    explicit Asked(net::Reply to) : reply(std::move(to)) {}
    net::Reply reply;
    std::size_t left = 0;
    json heard = json::array(), unheard = json::array();
    void finish_one() {
      if (--left == 0) reply.ok({{fencing::kHeard, std::move(heard)}, {fencing::kUnheard, std::move(unheard)}});
    }
  };
  std::map<std::string, wire::Member> members;
  for (const wire::EpochPlan& plan : epochs_.plans())
    for (const wire::Member& member : plan.members)
      if (member.rank != config_.rank) members.insert_or_assign(member.pod, member);
  std::vector<wire::Member> known;
  for (const json& pod : part_at(request.fields, fencing::kPods))
    if (const auto it = pod.is_string() ? members.find(pod.get<std::string>()) : members.end(); it != members.end())
      if (!std::ranges::contains(known, it->first, &wire::Member::pod)) known.push_back(it->second);
  auto asked = std::make_shared<Asked>(std::move(reply));
  asked->left = known.size() + 1;  // plus this function, because callbacks may come while it asks
  for (const wire::Member& member : known)
    epochs_.peer(member.pod, member.address)
        .call(fencing::kAlive, {{fencing::kComputes, false}}, {}, kAliveTimeout,
              [asked, pod = member.pod](const Result<net::Answer>& answer) {
                (answer ? asked->heard : asked->unheard).push_back(pod);
                asked->finish_one();
              });
  asked->finish_one();
}

// Only from the pod that `receive` has announced.
void Sidecar::checkpoint(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::MigrationRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  if (benchmark_) benchmark_->stop();  // all ranks wait for the checkpoint
  transfers_.checkpoint(request.peer, asked->migration, std::move(reply));
}

void Sidecar::modex(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::ModexRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  auto shared = std::make_shared<net::Reply>(std::move(reply));
  epochs_.published(asked->epoch, asked->rank, [shared](Result<std::string> blob) {
    if (blob)
      shared->ok(json::object(), std::move(*blob));
    else
      shared->error(blob.error());
  });
}

Result<json> Sidecar::alive(const net::Request& request) {
  if (flag_at(request.fields, fencing::kComputes, false)) fence_->asked();
  return json{{fencing::kAge, static_cast<std::uint64_t>(fence_->age().count())}};
}

Result<json> Sidecar::ping(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::EpochRequest>(request.fields));
  BSP_CHECK_OK(epochs_.all_gather(asked.epoch));
  if (program_.exited()) return fail(ErrorCode::kRefused, "its program has ended");
  // It may reconnect; if it doesn't, the program ended with it and the waiting members give up.
  if (program_.state && !program_.init_connected)
    return fail(ErrorCode::kUnavailable, "its bsp-init has disconnected", true);
  return json::object();
}

Result<json> Sidecar::report(const net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::ReportRequest>(request.fields));
  wire::RankReport report = collect::make_report(*ring_, config_.rank, asked.since, asked.every);
  if (asked.max_bytes > 0) wire::keep_within(report, asked.max_bytes);
  return json(report);
}

// A part counts only for the rank that the plan gives to the asking pod.
Result<json> Sidecar::take_part(net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::GatherRequest>(request.fields));
  BSP_TRY(pmix::AllGather * all_gather, epochs_.all_gather(asked.epoch));
  BSP_TRY(std::uint32_t rank, epochs_.rank_of(asked.epoch, request.peer));
  if (program_.exited()) return fail(ErrorCode::kRefused, "the root's program has ended");
  return nothing(all_gather->gather(asked.key, rank, std::move(request.body)));
}

Result<json> Sidecar::deliver(net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::DeliverRequest>(request.fields));
  BSP_TRY(pmix::AllGather * all_gather, epochs_.all_gather(asked.epoch));
  BSP_CHECK_OK(epochs_.rank_of(asked.epoch, request.peer));
  if (asked.failure) return nothing(all_gather->deliver(asked.key, fail(ErrorCode::kUnavailable, *asked.failure)));
  if (!asked.context_id) return fail(ErrorCode::kInvalid, "request.context_id: is required");
  return nothing(all_gather->deliver(asked.key, pmix::Gathered{std::move(request.body), *asked.context_id}));
}

}  // namespace bsp::sidecar
