// The verbs of crds/wire.h: a table of name, who may ask, and handler.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "sidecar/agent/collect/set_manager.h"
#include "sidecar/agent/gate.h"
#include "sidecar/agent/sidecar.h"

namespace bsp::sidecar {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kMaxWatch{30};
constexpr std::chrono::seconds kMemberTimeout{1};

Result<std::uint64_t> number(const json& fields, const char* name) {
  auto it = fields.find(name);
  if (it == fields.end() || !it->is_number_unsigned())
    return fail(ErrorCode::kInvalid, std::format("the request requires a number \"{}\"", name));
  return it->get<std::uint64_t>();
}

Result<std::string> text(const json& fields, const char* name) {
  auto it = fields.find(name);
  if (it == fields.end() || !it->is_string())
    return fail(ErrorCode::kInvalid, std::format("the request requires a string \"{}\"", name));
  return it->get<std::string>();
}

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
  BSP_TRY(std::uint64_t superstep, number(request.fields, "superstep"));
  if (program_.exited()) return fail(ErrorCode::kRefused, "the program has ended");
  if (!ring_.intact()) return fail(ErrorCode::kRefused, "the program has damaged its ring");
  BSP_TRY(Armed armed, sidecar::arm_gate(*ring_, superstep));
  return json{{"completed", armed.completed}, {"late", armed.late}};
}

Result<json> Sidecar::cancel_gate(const net::Request& request) {
  sidecar::cancel_gate(*ring_, number(request.fields, "superstep").value_or(0));
  return json::object();
}

Result<json> Sidecar::receive(const net::Request& request) {
  BSP_TRY(std::string migration, text(request.fields, "migration"));
  BSP_TRY(std::string from_pod, text(request.fields, "from_pod"));
  return nothing(transfers_.receive(migration, from_pod, flag_at(request.fields, "restore", false)));
}

Result<json> Sidecar::restore(const net::Request& request) {
  BSP_TRY(std::string migration, text(request.fields, "migration"));
  return nothing(transfers_.restore(migration));
}

void Sidecar::discard(net::Request& request, net::Reply reply) {
  auto migration = text(request.fields, "migration");
  if (!migration) return reply.error(migration.error());
  transfers_.discard(*migration, continued(), std::move(reply));
}

Result<json> Sidecar::kill(const net::Request&) {
  if (program_.exited()) return json::object();
  return nothing(control_->send(control::Kill{}));
}

void Sidecar::watch(net::Request& request, net::Reply reply) {
  auto version = number(request.fields, "version");
  auto wait_ms = number(request.fields, "wait_ms");
  if (!version || !wait_ms) return reply.error((!version ? version : wait_ms).error());
  refresh();
  if (status_.version != *version) return reply.ok(status_);
  auto wait = std::min<std::chrono::milliseconds>(
      std::chrono::milliseconds(std::min<std::uint64_t>(*wait_ms, 3'600'000)), kMaxWatch);
  std::uint64_t id = next_watcher_++;
  auto timer = loop_.after(wait, [this, id] {
    auto node = watchers_.extract(id);
    if (!node.empty()) node.mapped().reply.ok(status_);
  });
  watchers_.emplace(id, Watcher{std::move(reply), timer});
}

Result<json> Sidecar::prepare_epoch(const net::Request& request) {
  const json& fields = request.fields;
  BSP_TRY(wire::EpochPlan plan, wire::epoch_plan_from_json(fields));
  BSP_CHECK_OK(epochs_.prepare(std::move(plan)));
  save();
  return json::object();
}

Result<json> Sidecar::open_epoch(const net::Request& request) {
  const json& fields = request.fields;
  BSP_TRY(std::uint64_t epoch, number(fields, "epoch"));
  // Without a bsp-init (tests run ranks by hand) the program runs as this user.
  BSP_TRY(bool fresh, epochs_.open(epoch, program_.uid.value_or(::getuid()), program_.gid.value_or(::getgid())));
  if (fresh) {
    clear_gate(*ring_);  // it has served its purpose; left set, it would close the new epoch at once
    save();
  }
  continue_if_due();
  fault_point("epoch.continued");
  return json::object();
}

Result<json> Sidecar::commit_gate(const net::Request& request) {
  const json& fields = request.fields;
  BSP_TRY(std::uint64_t superstep, number(fields, "superstep"));
  std::optional<Order> order;
  if (auto send = fields.find("send"); send != fields.end()) {
    BSP_TRY(std::string migration, text(*send, "migration"));
    BSP_TRY(std::string to_pod, text(*send, "to_pod"));
    BSP_TRY(std::string to_address, text(*send, "to_address"));
    order = Order{superstep, std::move(migration), {std::move(to_address), std::move(to_pod)}};
  }
  BSP_CHECK_OK(sidecar::commit_gate(*ring_, superstep));
  order_ = std::move(order);
  if (order_) transfers_.connect_early(order_->target);
  send_if_ordered();
  return json::object();
}

Result<json> Sidecar::send_checkpoint(const net::Request& request) {
  const json& fields = request.fields;
  BSP_TRY(std::string migration, text(fields, "migration"));
  BSP_TRY(std::string to_pod, text(fields, "to_pod"));
  BSP_TRY(std::string to_address, text(fields, "to_address"));
  bool sending =
      transfers_.status().migration == migration && (transfers_.status().phase == wire::TransferPhase::kDumping ||
                                                     transfers_.status().phase == wire::TransferPhase::kSent);
  if (!sending && !program_.stopped_at_gate(*ring_))
    return fail(ErrorCode::kConflict,
                std::format("the program is {}, not stopped at a gate", to_string(phase_of(program_, *ring_))));
  if (!program_.init_connected) return fail(ErrorCode::kUnavailable, "bsp-init is not connected", true);
  return nothing(transfers_.send(migration, {to_address, to_pod}));
}

void Sidecar::set_report(net::Request& request, net::Reply reply) {
  const json& fields = request.fields;
  auto members = collect::members_from_json(fields);
  if (!members) return reply.error(members.error());
  auto shared = std::make_shared<net::Reply>(std::move(reply));
  const auto most = count_at<std::size_t>(fields, "max_bytes");
  collect::collect_set(
      *members, most > 0 ? std::min(most, wire::kUnpagedReports) : wire::kUnpagedReports,
      [this](const collect::SetMember& member) { return &epochs_.peer(member.pod, member.address); },
      [this](std::uint64_t since) { return collect::make_report(*ring_, config_.rank, since); }, config_.rank,
      kMemberTimeout,
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
  auto migration = text(request.fields, "migration");
  if (!migration) return reply.error(migration.error());
  transfers_.checkpoint(request.peer, *migration, std::move(reply));
}

void Sidecar::modex(net::Request& request, net::Reply reply) {
  auto epoch = number(request.fields, "epoch");
  auto rank = number(request.fields, "rank");
  if (!epoch || !rank) return reply.error((!epoch ? epoch : rank).error());
  auto shared = std::make_shared<net::Reply>(std::move(reply));
  epochs_.published(*epoch, static_cast<std::uint32_t>(*rank), [shared](Result<std::string> blob) {
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
  BSP_TRY(std::uint64_t epoch, number(request.fields, "epoch"));
  BSP_CHECK_OK(epochs_.all_gather(epoch));
  if (program_.exited()) return fail(ErrorCode::kRefused, "its program has ended");
  // It may reconnect; if it doesn't, the program ended with it and the waiting members give up.
  if (program_.state && !program_.init_connected)
    return fail(ErrorCode::kUnavailable, "its bsp-init has disconnected", true);
  return json::object();
}

Result<json> Sidecar::report(const net::Request& request) {
  const json& fields = request.fields;
  BSP_TRY(std::uint64_t since, number(fields, "since"));
  wire::RankReport report = collect::make_report(*ring_, config_.rank, since);
  if (const auto most = count_at<std::size_t>(fields, "max_bytes"); most > 0) wire::keep_within(report, most);
  return json(report);
}

// A part counts only for the rank that the plan gives to the asking pod.
Result<json> Sidecar::take_part(net::Request& request) {
  BSP_TRY(std::uint64_t epoch, number(request.fields, "epoch"));
  BSP_TRY(std::string key, text(request.fields, "key"));
  BSP_TRY(pmix::AllGather * all_gather, epochs_.all_gather(epoch));
  BSP_TRY(std::uint32_t rank, epochs_.rank_of(epoch, request.peer));
  if (program_.exited()) return fail(ErrorCode::kRefused, "the root's program has ended");
  return nothing(all_gather->gather(key, rank, std::move(request.body)));
}

Result<json> Sidecar::deliver(net::Request& request) {
  BSP_TRY(std::uint64_t epoch, number(request.fields, "epoch"));
  BSP_TRY(std::string key, text(request.fields, "key"));
  BSP_TRY(pmix::AllGather * all_gather, epochs_.all_gather(epoch));
  BSP_CHECK_OK(epochs_.rank_of(epoch, request.peer));
  if (request.fields.contains("failure")) {
    BSP_TRY(std::string failure, text(request.fields, "failure"));
    return nothing(all_gather->deliver(key, fail(ErrorCode::kUnavailable, failure)));
  }
  BSP_TRY(std::uint64_t context_id, number(request.fields, "context_id"));
  return nothing(all_gather->deliver(key, pmix::Gathered{std::move(request.body), context_id}));
}

}  // namespace bsp::sidecar
