// The fields of the requests and answers of wire.h's verbs. A request of two verbs with the same fields is one struct.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crds/reflect.h"
#include "crds/wire.h"

namespace bsp::wire {

struct WatchRequest {  // watch
  std::uint64_t version = 0;
  std::uint64_t wait_ms = 0;
};
constexpr void fields_of(Of<WatchRequest>, auto&& v) {
  v("version", &WatchRequest::version, kRequired);
  v("wait_ms", &WatchRequest::wait_ms, kRequired);
}

struct EpochRequest {  // openEpoch
  std::uint64_t epoch = 0;
};
constexpr void fields_of(Of<EpochRequest>, auto&& v) { v("epoch", &EpochRequest::epoch, kRequired); }

struct PingRequest {  // ping
  std::uint64_t epoch = 0;
  std::vector<std::uint32_t> ranks;  // those of the pod that are waited for; none: all
};
constexpr void fields_of(Of<PingRequest>, auto&& v) {
  v("epoch", &PingRequest::epoch, kRequired);
  v("ranks", &PingRequest::ranks, Field{.most = kMostMembers});
}

struct GateRequest {  // armGate, cancelGate
  std::uint64_t superstep = 0;
};
constexpr void fields_of(Of<GateRequest>, auto&& v) { v("superstep", &GateRequest::superstep, kRequired); }

struct ArmAnswer {
  std::uint64_t completed = 0;
  bool late = false;
};
constexpr void fields_of(Of<ArmAnswer>, auto&& v) {
  v("completed", &ArmAnswer::completed, kRequired);
  v("late", &ArmAnswer::late);
}

struct SendRequest {  // send
  std::string migration, to_pod, to_address;
};
constexpr void fields_of(Of<SendRequest>, auto&& v) {
  v("migration", &SendRequest::migration, kRequired);
  v("to_pod", &SendRequest::to_pod, kRequired);
  v("to_address", &SendRequest::to_address, kRequired);
}

// Which set an image belongs to, and its key. The key is added when the request is sent (operator/reconcile/shell).
struct SaveRequest {  // save
  std::uint64_t set = 0;
  std::uint64_t epoch = 0;  // that the ranks closed at the gate
  std::uint32_t attempt = 0;
  std::string key = {};  // 32 bytes in base64
  // save: the set that the image may build on (wire::base_of), and which then stays as long as the image does; 0: it has to be whole.
  std::uint64_t base = 0;
  // load of another job's set: its uid, and the grant by which the key is added, which isn't sent.
  std::string job = {};
  std::string grant = {};
  bool operator==(const SaveRequest&) const = default;
};
constexpr void fields_of(Of<SaveRequest>, auto&& v) {
  v("set", &SaveRequest::set, kRequired);
  v("epoch", &SaveRequest::epoch, kRequired);
  v("attempt", &SaveRequest::attempt, kRequired);
  v("key", &SaveRequest::key);
  v("base", &SaveRequest::base, kRare);
  v("job", &SaveRequest::job, kRare);
  v("grant", &SaveRequest::grant, kRare);
}

struct LoadRequest {  // load
  SaveRequest image = {};
  std::string digest = {};
  bool ignore_files = false;  // spec.checkpoint.sharedFiles: Ignore
};
constexpr void fields_of(Of<LoadRequest>, auto&& v) {
  v("image", &LoadRequest::image, kRequired);
  v("digest", &LoadRequest::digest, kRequired);
  v("ignore_files", &LoadRequest::ignore_files, kRare);
}

struct KeepSetsRequest {  // keepSets
  std::uint64_t below = 0;
  std::vector<std::uint64_t> keep = {};
  // Those of `keep` that only stay because others build on them, as far as they do. An older sidecar keeps all of them.
  std::vector<std::uint64_t> bases = {};
  // Once in a while: whose the job's directory is, and what becomes of others with the same mark (sidecar/storage/storage.h, Orphans).
  std::string owner = {};              // the mark; "": nothing is to be done
  bool retain = false;                 // it comes off
  std::vector<std::string> jobs = {};  // whose sets stay
  std::uint64_t orphan_seconds = 0;    // how old the others have to be; 0: they stay
  bool operator==(const KeepSetsRequest&) const = default;
};
constexpr void fields_of(Of<KeepSetsRequest>, auto&& v) {
  v("below", &KeepSetsRequest::below, kRequired);
  v("keep", &KeepSetsRequest::keep, kRequired);
  v("bases", &KeepSetsRequest::bases, kRare);
  v("owner", &KeepSetsRequest::owner, kRare);
  v("retain", &KeepSetsRequest::retain, kRare);
  v("jobs", &KeepSetsRequest::jobs, kRare);
  v("orphan_seconds", &KeepSetsRequest::orphan_seconds, kRare);
}

struct CommitRequest {  // commitGate
  std::uint64_t superstep = 0;
  std::optional<SendRequest> send = {};
  std::optional<SaveRequest> save = {};
};
constexpr void fields_of(Of<CommitRequest>, auto&& v) {
  v("superstep", &CommitRequest::superstep, kRequired);
  v("send", &CommitRequest::send);
  v("save", &CommitRequest::save);
}

struct ReceiveRequest {  // receive
  std::string migration, from_pod;
  bool restore = false;
};
constexpr void fields_of(Of<ReceiveRequest>, auto&& v) {
  v("migration", &ReceiveRequest::migration, kRequired);
  v("from_pod", &ReceiveRequest::from_pod, kRequired);
  v("restore", &ReceiveRequest::restore);
}

struct MigrationRequest {  // restore, discard, checkpoint
  std::string migration;
};
constexpr void fields_of(Of<MigrationRequest>, auto&& v) { v("migration", &MigrationRequest::migration, kRequired); }

struct ReportRequest {  // report
  std::uint64_t since = 0;
  std::uint64_t max_bytes = 0;  // 0: all of it
  std::uint64_t every = 1;      // see sampled()
};
constexpr void fields_of(Of<ReportRequest>, auto&& v) {
  v("since", &ReportRequest::since, kRequired);
  v("max_bytes", &ReportRequest::max_bytes, kRare);
  v("every", &ReportRequest::every, kRare);
}

struct GatherRequest {  // gather
  std::uint64_t epoch = 0;
  std::string key;
};
constexpr void fields_of(Of<GatherRequest>, auto&& v) {
  v("epoch", &GatherRequest::epoch, kRequired);
  v("key", &GatherRequest::key, kRequired);
}

struct DeliverRequest {  // deliver: the whole, or why there will be none
  std::uint64_t epoch = 0;
  std::string key;
  std::optional<std::uint64_t> context_id;
  std::optional<std::string> failure;
  std::vector<std::uint32_t> onward;  // servers to which the receiver passes it on
};
// The receiver has it, and so have these. Fewer than were asked, or none said by an older version: the asking one sends it itself.
struct DeliverAnswer {
  std::uint64_t onward = 0;  // servers
};
constexpr void fields_of(Of<DeliverAnswer>, auto&& v) { v("onward", &DeliverAnswer::onward); }
constexpr void fields_of(Of<DeliverRequest>, auto&& v) {
  v("epoch", &DeliverRequest::epoch, kRequired);
  v("key", &DeliverRequest::key, kRequired);
  v("context_id", &DeliverRequest::context_id);
  v("failure", &DeliverRequest::failure);
  v("onward", &DeliverRequest::onward, Field{.most = kMostMembers});
}

struct ModexRequest {  // modex
  std::uint64_t epoch = 0;
  std::uint32_t rank = 0;
};
constexpr void fields_of(Of<ModexRequest>, auto&& v) {
  v("epoch", &ModexRequest::epoch, kRequired);
  v("rank", &ModexRequest::rank, kRequired);
}

template <class T>
Result<T> read_request(const nlohmann::json& fields) {
  return reflect::read<T>(fields, "request", {.most_whole = UINT64_MAX});
}
// Shared by all actions that send it.
template <class T>
std::shared_ptr<const nlohmann::json> encode(const T& request) {
  return std::make_shared<const nlohmann::json>(reflect::write(request));
}

}  // namespace bsp::wire
