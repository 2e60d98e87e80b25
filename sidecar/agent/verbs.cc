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

constexpr std::chrono::seconds kMemberTimeout{1};

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

template <auto function>
void Sidecar::seat_at_once(net::Request& request, net::Reply reply) {
  const auto seat = seat_of(request);
  if (!seat) return reply.error(seat.error());
  reply.result(((*seat)->*function)(request));
}

template <auto function>
void Sidecar::seat_changing(net::Request& request, net::Reply reply) {
  const auto seat = seat_of(request);
  if (!seat) return reply.error(seat.error());
  Result<json> answer = ((*seat)->*function)(request);
  (*seat)->refresh();
  reply.result(std::move(answer));
}

template <auto function>
void Sidecar::at_seat(net::Request& request, net::Reply reply) {
  const auto seat = seat_of(request);
  if (!seat) return reply.error(seat.error());
  ((*seat)->*function)(request, std::move(reply));
}

Result<Seat*> Sidecar::seat_of(const net::Request& request) {
  const json& named = part_at(request.fields, "seat");
  const auto number = named.is_null() ? 0u : whole_number<std::uint32_t>(named);
  if (!number) return fail(ErrorCode::kInvalid, "request.seat: must be a whole number");
  if (*number >= seats_.size())
    return fail(ErrorCode::kNotFound,
                std::format("pod {} has no seat {}, it has {}", config_.pod, *number, seats_.size()));
  return seats_[*number].get();
}

std::span<const Sidecar::Verb> Sidecar::verbs() {
  using S = Sidecar;
  static constexpr Verb kVerbs[] = {
      {wire::kStatus, kOperator, &S::seat_at_once<&Seat::status>},
      {wire::kWatch, kOperator, &S::at_seat<&Seat::watch>},
      {wire::kPrepareEpoch, kOperator | kActs, &S::changing<&S::prepare_epoch>},
      {wire::kOpenEpoch, kOperator | kActs, &S::seat_changing<&Seat::open_epoch>},
      {wire::kArmGate, kOperator | kActs, &S::seat_changing<&Seat::arm_gate>},
      {wire::kCommitGate, kOperator | kActs, &S::seat_changing<&Seat::commit_gate>},
      {wire::kCancelGate, kOperator | kActs, &S::seat_changing<&Seat::cancel_gate>},
      {wire::kReceive, kOperator | kActs, &S::seat_changing<&Seat::receive>},
      {wire::kSend, kOperator | kActs, &S::seat_changing<&Seat::send_checkpoint>},
      {wire::kRestore, kOperator | kActs, &S::seat_changing<&Seat::restore>},
      {wire::kDiscard, kOperator | kActs, &S::at_seat<&Seat::discard>},
      {wire::kSave, kOperator | kActs, &S::seat_changing<&Seat::save_image>},
      {wire::kLoad, kOperator | kActs, &S::seat_changing<&Seat::load_image>},
      {wire::kKeepSets, kOperator | kActs, &S::seat_at_once<&Seat::keep_sets>},
      {wire::kKill, kOperator | kActs, &S::seat_changing<&Seat::kill>},
      {wire::kReport, kOperator | kMembers, &S::seat_at_once<&Seat::report>},
      {wire::kSetReport, kOperator, &S::set_report},
      {fencing::kHears, kOperator, &S::probe_ranks},
      {fencing::kAlive, kMembers, &S::at_once<&S::alive>},
      {wire::kGather, kMembers, &S::at_once<&S::take_part>},
      {wire::kDeliver, kMembers, &S::deliver},
      {wire::kPing, kMembers, &S::at_once<&S::ping>},
      {wire::kModex, kMembers, &S::modex},
      {wire::kCheckpoint, kAnnounced, &S::checkpoint},
  };
  return kVerbs;
}

std::vector<std::string_view> Sidecar::acting_verbs() {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs())
    if ((verb.allowed & kActs) != 0) names.push_back(verb.name);
  return names;
}

bool Sidecar::is_allowed(const Verb& verb, const std::string& peer) const {
  if (peer == names::kOperatorIdentity) return (verb.allowed & kOperator) != 0;
  return (verb.allowed & kAnnounced) != 0 || ((verb.allowed & kMembers) != 0 && epochs_.is_member(peer));
}

void Sidecar::handle(net::Request request, net::Reply reply) {
  if (request.peer == names::kOperatorIdentity) {
    fence_->operator_spoke();
    for (const auto& seat : seats_) seat->operator_spoke();
  }
  const auto verb = std::ranges::find(verbs(), request.verb, &Verb::name);
  if (verb == verbs().end())
    return reply.error({ErrorCode::kInvalid, std::format("unknown verb \"{}\"", request.verb)});
  if (is_allowed(*verb, request.peer)) {
    if ((verb->allowed & kActs) != 0)
      if (const auto due = epochs_.followed().follow(request.verb, request.fields); !due) {
        log_warning("refused a verb that is late", {{"verb", request.verb}, {"reason", due.error().message}});
        return reply.error(due.error());
      }
    return (this->*verb->handle)(request, std::move(reply));
  }
  log_warning("refused a request", {{"verb", request.verb}, {"peer", request.peer}});
  reply.error({ErrorCode::kRefused, std::format("{} is not allowed to send {}", request.peer, request.verb)});
}

Result<json> Sidecar::prepare_epoch(const net::Request& request) {
  BSP_TRY(wire::EpochPlan plan, wire::epoch_plan_from_json(request.fields));
  BSP_CHECK_OK(epochs_.prepare(std::move(plan)));
  // The operator relies on no epoch before this one being opened here, by a next sidecar either.
  BSP_CHECK_OK(save());
  for (const auto& seat : seats_) {
    seat->start_if_due();
    seat->tell_parting();
  }
  return json::object();
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
      [this, every](const collect::SetMember& member) -> std::optional<wire::RankReport> {
        if (member.pod != config_.pod || member.seat >= seats_.size()) return std::nullopt;
        return seats_[member.seat]->make_report(member.since, every);
      },
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
      if (member.pod != config_.pod) members.insert_or_assign(member.pod, member);
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

// The seat that expects it checks who sends it.
void Sidecar::checkpoint(net::Request& request, net::Reply reply) {
  const std::string migration = text_at(request.fields, "migration");
  const auto seat = std::ranges::find_if(seats_, [&](const auto& s) { return s->expects(migration); });
  (seat != seats_.end() ? *seat : seats_.front())->checkpoint(request, std::move(reply));
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
  BSP_TRY(const auto asked, wire::read_request<wire::PingRequest>(request.fields));
  BSP_CHECK_OK(epochs_.all_gather(asked.epoch));
  const auto waited_for = epochs_.seats_of(asked.epoch, asked.ranks);
  for (const std::uint32_t seat : waited_for)
    if (seats_[seat]->exited()) return fail(ErrorCode::kRefused, "its program has ended");
  // It may reconnect; if it doesn't, the program ended with it and the waiting members give up.
  for (const std::uint32_t seat : waited_for)
    if (seats_[seat]->lost_init()) return fail(ErrorCode::kUnavailable, "its bsp-init has disconnected", true);
  return json::object();
}

// A part counts only for the ranks that the plan gives to the asking pod.
Result<json> Sidecar::take_part(net::Request& request) {
  BSP_TRY(const auto asked, wire::read_request<wire::GatherRequest>(request.fields));
  BSP_TRY(pmix::AllGather * all_gather, epochs_.all_gather(asked.epoch));
  BSP_TRY(const std::uint32_t server, epochs_.server_of(asked.epoch, request.peer));
  const auto here = epochs_.seats_of(asked.epoch, {});
  if (std::ranges::all_of(here, [this](std::uint32_t seat) { return seats_[seat]->exited(); }))
    return fail(ErrorCode::kRefused, "the root's program has ended");
  return nothing(all_gather->gather(asked.key, server, std::move(request.body)));
}

void Sidecar::deliver(net::Request& request, net::Reply reply) {
  const auto asked = wire::read_request<wire::DeliverRequest>(request.fields);
  if (!asked) return reply.error(asked.error());
  const auto all_gather = epochs_.all_gather(asked->epoch);
  if (!all_gather) return reply.error(all_gather.error());
  if (const auto member = epochs_.server_of(asked->epoch, request.peer); !member) return reply.error(member.error());
  if (!asked->failure && !asked->context_id)
    return reply.error({ErrorCode::kInvalid, "request.context_id: is required"});
  Result<pmix::Gathered> all = fail(ErrorCode::kUnavailable, asked->failure.value_or(""));
  if (!asked->failure) all = pmix::Gathered{std::move(request.body), *asked->context_id};
  (*all_gather)
      ->deliver(asked->key, std::move(all), asked->onward,
                [reply = std::make_shared<net::Reply>(std::move(reply))](std::uint64_t onward) {
                  reply->ok(reflect::write(wire::DeliverAnswer{onward}));
                });
}

}  // namespace bsp::sidecar
