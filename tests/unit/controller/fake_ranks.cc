#include "fake_ranks.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <format>

#include "base/core/base64.h"
#include "base/net/tls.h"
#include "crds/names.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::controller {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::steady_clock;

namespace {

constexpr std::uint64_t kRing = 256;  // supersteps that a rank's ring holds

std::string decoded(const json& secret, const std::string& name) {
  const auto text = base64_decode(secret.at("data").value(name, ""));
  check(text.has_value(), "a Secret's data is base64");
  return *text;
}

}  // namespace

struct FakeRanks::Rank {
  wire::RankStatus status;
  std::uint32_t set = 0;
  std::size_t sets = 1;
  steady_clock::time_point opened{};
  std::uint64_t completed_before = 0;
  std::unique_ptr<net::LinkServer> server;
};

ReservedNetwork::ReservedNetwork() {
  for (number_ = 128; number_ < 255; ++number_) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in last{};
    last.sin_family = AF_INET;
    last.sin_port = htons(names::kSidecarPort);
    last.sin_addr.s_addr = htonl(0x7f00fffe | number_ << 16);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&last), sizeof last) == 0) {
      held_ = std::move(fd);
      return;
    }
  }
  check(false, "one of the networks 127.128.0.0 to 127.254.0.0 is free");
}

FakeRanks::FakeRanks(kube::Client& client, FakeRanksOptions options) : client_(client), options_(std::move(options)) {}

FakeRanks::~FakeRanks() {
  thread_.run([this] { ranks_.clear(); });
}

std::size_t FakeRanks::bring_up(const std::function<std::string(const std::string&, std::uint32_t)>& node_of) {
  const auto pods = client_.list(kPod, options_.name_space);
  if (!pods) return 0;
  std::map<std::string, json> secrets;
  std::size_t up = 0;
  for (json pod : *pods) {
    const std::string name = pod["metadata"]["name"];
    bool known = false;
    std::size_t number = 0;
    thread_.run([&] {
      known = ranks_.contains(name);
      number = ranks_.size();
    });
    if (known) {
      ++up;
      continue;
    }
    const json& metadata = pod.at("metadata");
    const std::string secret_name = reconcile::secret_name(
        {metadata.at("labels").at(std::string(names::kLabelJob)), metadata.at("ownerReferences").at(0).at("uid")},
        reconcile::request_of(pod));
    if (!secrets.contains(secret_name)) {
      auto secret = client_.get({kSecret, options_.name_space, secret_name});
      if (!secret) continue;
      secrets[secret_name] = std::move(*secret);
    }
    const json& secret = secrets[secret_name];
    const json& labels = pod["metadata"]["labels"];
    auto rank = std::make_shared<Rank>();
    rank->status.version = 1;
    rank->status.rank = static_cast<std::uint32_t>(
        std::strtoul(labels.at(std::string(names::kLabelRank)).get_ref<const std::string&>().c_str(), nullptr, 10));
    rank->status.pod = name;
    rank->status.phase = wire::RankPhase::kStarting;
    rank->status.init_connected = true;
    rank->status.memory_bytes = 64 << 20;
    const std::string address = std::format("127.{}.{}.{}", network_.number(), number / 250, number % 250 + 1);
    auto tls = net::TlsContext::create({decoded(secret, "ca.pem"), decoded(secret, reconcile::certificate_file(name)),
                                        decoded(secret, reconcile::key_file(name))});
    check(tls.has_value(), "a pod's certificate can be used");
    thread_.run([&] {
      auto server = net::LinkServer::listen(thread_.loop, *tls, std::format("{}:{}", address, names::kSidecarPort),
                                            [this, weak = std::weak_ptr(rank)](net::Request request, net::Reply reply) {
                                              if (const auto self = weak.lock())
                                                serve(self, std::move(request), std::move(reply));
                                            });
      check(server.has_value(), server ? "" : server.error().message.c_str());
      rank->server = std::move(*server);
      ranks_[name] = rank;
    });
    pod["spec"]["nodeName"] = node_of(labels.at(std::string(names::kLabelSet)), rank->status.rank);
    pod["metadata"].erase("resourceVersion");
    if (!client_.update(pod)) continue;
    pod["status"] = {{"phase", "Running"}, {"podIP", address}};
    if (client_.update_status(pod)) ++up;
  }
  return up;
}

void FakeRanks::silence(const std::string& pod) {
  thread_.run([&] { ranks_.at(pod)->server.reset(); });
}

std::uint64_t FakeRanks::asked(const std::string& verb) {
  const std::lock_guard lock(mutex_);
  return asked_[verb];
}

std::uint64_t FakeRanks::completed(const Rank& rank) const {
  if (rank.opened == steady_clock::time_point{}) return rank.completed_before;
  return rank.completed_before + static_cast<std::uint64_t>((steady_clock::now() - rank.opened) / options_.superstep);
}

json FakeRanks::status_of(Rank& rank) const {
  rank.status.completed = completed(rank);
  json header;
  to_json(header, rank.status);
  return header;
}

json FakeRanks::report_of(Rank& rank, const wire::ReportRequest& request) const {
  wire::RankReport report;
  report.rank = rank.status.rank;
  report.completed = completed(rank);
  report.epoch = rank.status.epoch;
  report.memory_bytes = rank.status.memory_bytes;
  const auto whole = static_cast<std::uint64_t>(options_.superstep.count());
  const std::uint64_t first = std::max(request.since + 1, report.completed > kRing ? report.completed - kRing + 1 : 1);
  for (std::uint64_t t = first; t <= report.completed; ++t) {
    if (!wire::sampled(t, request.every)) continue;
    const double share = options_.compute_share ? options_.compute_share(rank.status.rank, t) : 0.5;
    wire::SuperstepReport superstep;
    superstep.superstep = t;
    superstep.end_ns = t * whole;
    superstep.compute_ns = static_cast<std::uint64_t>(share * static_cast<double>(whole));
    superstep.instructions = superstep.compute_ns;
    superstep.comm_ns = whole / 50;
    superstep.edge_ns = whole - superstep.compute_ns;
    superstep.recv_bytes.assign(rank.set + 1, 0);
    superstep.recv_ns.assign(rank.set + 1, 0);
    superstep.recv_bytes.back() = 8192;
    superstep.recv_ns.back() = whole / 50;
    report.supersteps.push_back(std::move(superstep));
  }
  if (request.max_bytes > 0) wire::keep_within(report, request.max_bytes);
  json j;
  to_json(j, report);
  return j;
}

void FakeRanks::serve(const std::shared_ptr<Rank>& rank, net::Request request, net::Reply reply) {
  {
    const std::lock_guard lock(mutex_);
    ++asked_[request.verb];
  }
  wire::RankStatus& status = rank->status;
  if (request.verb == wire::kStatus) return reply.ok(status_of(*rank));
  if (request.verb == wire::kWatch)
    return answer_watch(rank, request.fields.value("version", std::uint64_t{0}),
                        steady_clock::now() + std::chrono::milliseconds(request.fields.value("wait_ms", 0)),
                        std::make_shared<net::Reply>(std::move(reply)));
  if (request.verb == wire::kPrepareEpoch) {
    if (const auto plan = wire::epoch_plan_from_json(request.fields)) {
      status.prepared_epoch = plan->epoch;
      rank->sets = plan->sets.size();
      for (const wire::Member& member : plan->members)
        if (member.rank == status.rank) rank->set = member.set;
    }
    ++status.version;
    return reply.ok();
  }
  if (request.verb == wire::kOpenEpoch) {
    status.epoch = request.fields.value("epoch", std::uint64_t{0});
    status.phase = wire::RankPhase::kRunning;
    status.mpi_initialized = true;
    if (rank->opened == steady_clock::time_point{}) rank->opened = steady_clock::now();
    ++status.version;
    return reply.ok();
  }
  if (request.verb == wire::kSetReport) {
    json reports = json::array();
    const json members = request.fields.value("members", json::array());
    const std::uint64_t share = request.fields.value("max_bytes", std::uint64_t{0}) /
                                std::max<std::size_t>(members.size(), 1),
                        every = request.fields.value("every", std::uint64_t{1});
    for (const json& member : members)
      if (const auto it = ranks_.find(member.value("pod", "")); it != ranks_.end())
        reports.push_back(report_of(*it->second, {member.value("since", std::uint64_t{0}), share, every}));
    return reply.ok({{"reports", std::move(reports)}, {"missing", json::array()}});
  }
  reply.error({ErrorCode::kUnavailable, std::format("{} is not played", request.verb), true});
}

void FakeRanks::answer_watch(const std::shared_ptr<Rank>& rank, std::uint64_t version, steady_clock::time_point until,
                             std::shared_ptr<net::Reply> reply) {
  if (rank->status.version != version || steady_clock::now() >= until) return reply->ok(status_of(*rank));
  thread_.loop.after(50ms, [this, weak = std::weak_ptr(rank), version, until, reply] {
    if (const auto self = weak.lock()) answer_watch(self, version, until, reply);
  });
}

}  // namespace bsp::controller
