// JSON of wire.h. Reading is strict about what it needs and blind to what it doesn't know.
#include "crds/wire.h"

#include <algorithm>
#include <array>
#include <format>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/json/fields.h"

namespace bsp::wire {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 9> kRankPhases{"Waiting", "Starting", "Opening",   "Running", "AtGate",
                                                      "Closing", "Stopped",  "Finalized", "Exited"};
constexpr std::array<std::string_view, 8> kTransferPhases{"Idle", "Receiving", "Received", "Dumping",
                                                          "Sent", "Restoring", "Restored", "Failed"};

constexpr std::size_t kMostMembers = 1'000'000;  // only the operator sends a plan

// Reads fields of one object and remembers the first thing that is wrong, so that a message's reader
// is one list of fields.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) wrong("is not an object");
  }

  template <class T>
  void required(const char* name, T& into) {
    if (const json* value = find(name))
      read(name, *value, into);
    else
      wrong_field(name, "is missing");
  }
  template <class T>
  void optional(const char* name, T& into) {
    if (const json* value = find(name)) read(name, *value, into);
  }

  // An array of objects, each read by `one`.
  template <class T, class One>
  void each(const char* name, std::vector<T>& into, std::size_t most, One one) {
    const json* value = find(name);
    if (!value) return wrong_field(name, "is missing");
    if (!value->is_array()) return wrong_field(name, "is not an array");
    if (value->size() > most) return wrong_field(name, std::format("has more than {} entries", most));
    into.reserve(value->size());
    for (std::size_t i = 0; i < value->size() && !error_; ++i) {
      Result<T> item = one((*value)[i], std::format("{}.{}[{}]", where_, name, i));
      if (item)
        into.push_back(std::move(*item));
      else
        error_ = item.error();
    }
  }

  template <class T>
  Result<T> done(T value) {
    if (error_) return std::unexpected(*error_);
    return value;
  }

 private:
  const json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void wrong(std::string_view what) {
    if (!error_) error_ = Error{ErrorCode::kInvalid, std::format("{} {}", where_, what)};
  }
  void wrong_field(std::string_view name, std::string_view what) {
    wrong(std::format("has a field \"{}\" that {}", name, what));
  }

  void read(const char* name, const json& value, std::string& into) {
    if (value.is_string())
      into = value.get<std::string>();
    else
      wrong_field(name, "is not a string");
  }
  void read(const char* name, const json& value, bool& into) {
    if (value.is_boolean())
      into = value.get<bool>();
    else
      wrong_field(name, "is not true or false");
  }
  template <class Number>
    requires std::is_integral_v<Number>
  void read(const char* name, const json& value, Number& into) {
    const auto number = whole_number<Number>(value);
    if (!number)
      return wrong_field(
          name, std::is_unsigned_v<Number> ? "is not an unsigned number of its size" : "is not an integer of its size");
    into = *number;
  }
  template <class T>
  void read(const char* name, const json& value, std::vector<T>& into) {
    if (!value.is_array()) return wrong_field(name, "is not an array");
    // Names of Sets are the operator's, numbers by Set come from the ring.
    const std::size_t most = std::is_arithmetic_v<T> ? kMostSets : kMostMembers;
    if (value.size() > most) return wrong_field(name, std::format("has more than {} entries", most));
    into.clear();
    for (const json& item : value) read(name, item, into.emplace_back());
  }
  void read(const char* name, const json& value, RankPhase& into) { read_enum(name, value, kRankPhases, into); }
  void read(const char* name, const json& value, TransferPhase& into) { read_enum(name, value, kTransferPhases, into); }
  template <class Enum, std::size_t n>
  void read_enum(const char* name, const json& value, const std::array<std::string_view, n>& names, Enum& into) {
    if (value.is_string())
      for (std::size_t i = 0; i < n; ++i)
        if (value.get_ref<const std::string&>() == names[i]) {
          into = static_cast<Enum>(i);
          return;
        }
    wrong_field(name, "is none of the known names");
  }

  const json& object_;
  std::string where_;
  std::optional<Error> error_;
};

Result<Member> member_from_json(const json& j, std::string where) {
  Member v;
  Fields f(j, std::move(where));
  f.required("rank", v.rank);
  f.required("pod", v.pod);
  f.required("pod_uid", v.pod_uid);
  f.required("address", v.address);
  f.optional("set", v.set);
  return f.done(std::move(v));
}

Result<SuperstepReport> superstep_from_json(const json& j, std::string where) {
  SuperstepReport v;
  Fields f(j, std::move(where));
  f.required("superstep", v.superstep);
  f.optional("end_ns", v.end_ns);
  f.optional("instructions", v.instructions);
  f.optional("compute_ns", v.compute_ns);
  f.optional("comm_ns", v.comm_ns);
  f.optional("edge_ns", v.edge_ns);
  f.optional("sent_bytes", v.sent_bytes);
  f.optional("recv_bytes", v.recv_bytes);
  f.optional("recv_ns", v.recv_ns);
  return f.done(std::move(v));
}

Result<TransferStatus> transfer_from_json(const json& j, std::string where) {
  TransferStatus v;
  Fields f(j, std::move(where));
  f.optional("migration", v.migration);
  f.required("phase", v.phase);
  f.optional("bytes", v.bytes);
  f.optional("files", v.files);
  f.optional("dump_ns", v.dump_ns);
  f.optional("transfer_ns", v.transfer_ns);
  f.optional("restore_ns", v.restore_ns);
  f.optional("error", v.error);
  return f.done(std::move(v));
}

json to_object(const TransferStatus& v) {
  return {{"migration", v.migration}, {"phase", to_string(v.phase)},  {"bytes", v.bytes},           {"files", v.files},
          {"dump_ns", v.dump_ns},     {"transfer_ns", v.transfer_ns}, {"restore_ns", v.restore_ns}, {"error", v.error}};
}

json to_object(const SuperstepReport& s) {
  return {{"superstep", s.superstep},   {"end_ns", s.end_ns},         {"instructions", s.instructions},
          {"compute_ns", s.compute_ns}, {"comm_ns", s.comm_ns},       {"edge_ns", s.edge_ns},
          {"sent_bytes", s.sent_bytes}, {"recv_bytes", s.recv_bytes}, {"recv_ns", s.recv_ns}};
}

// Nothing but this sidecar's own rank suffers from a wrong status, so what is too much is cut, and the rest still counts.
void clamp(RankStatus& v) {
  for (std::string* text :
       {&v.pod, &v.blocked_reason, &v.collective, &v.exit_message, &v.transfer.migration, &v.transfer.error})
    cut_text(*text, kMostText);
  for (std::uint64_t* count : {&v.completed, &v.gate_superstep, &v.epoch, &v.prepared_epoch})
    *count = std::min(*count, kMostSupersteps);
  for (std::uint64_t* figure : {&v.memory_bytes, &v.gate_reached_ns, &v.close_ns, &v.stopped_ns, &v.opened_ns,
                                &v.open_ns, &v.open_cpu_ns, &v.first_compute_ns, &v.transfer.bytes, &v.transfer.files,
                                &v.transfer.dump_ns, &v.transfer.transfer_ns, &v.transfer.restore_ns})
    *figure = std::min(*figure, kMostNs);
}

}  // namespace

std::string_view to_string(RankPhase phase) { return kRankPhases[static_cast<std::size_t>(phase)]; }
std::string_view to_string(TransferPhase phase) { return kTransferPhases[static_cast<std::size_t>(phase)]; }

void to_json(json& j, const EpochPlan& v) {
  json members = json::array();
  for (const Member& m : v.members)
    members.push_back(
        {{"rank", m.rank}, {"pod", m.pod}, {"pod_uid", m.pod_uid}, {"address", m.address}, {"set", m.set}});
  j = {{"epoch", v.epoch}, {"pmix_namespace", v.pmix_namespace}, {"sets", v.sets}, {"members", std::move(members)}};
}

Result<EpochPlan> epoch_plan_from_json(const json& j) {
  EpochPlan v;
  Fields f(j, "epoch plan");
  f.required("epoch", v.epoch);
  f.required("pmix_namespace", v.pmix_namespace);
  f.optional("sets", v.sets);
  f.each("members", v.members, kMostMembers, member_from_json);
  BSP_TRY(v, f.done(std::move(v)));
  for (std::size_t i = 0; i < v.members.size(); ++i)
    if (v.members[i].rank != i)
      return fail(ErrorCode::kInvalid, std::format("epoch plan has rank {} at place {}", v.members[i].rank, i));
  return v;
}

void to_json(json& j, const RankStatus& v) {
  j = {{"version", v.version},
       {"rank", v.rank},
       {"pod", v.pod},
       {"phase", to_string(v.phase)},
       {"init_connected", v.init_connected},
       {"epoch", v.epoch},
       {"prepared_epoch", v.prepared_epoch},
       {"admitted_epoch", v.admitted_epoch},
       {"completed", v.completed},
       {"gate_superstep", v.gate_superstep},
       {"gate_committed", v.gate_committed},
       {"blocked_reason", v.blocked_reason},
       {"postponed", v.postponed},
       {"collective", v.collective},
       {"exit_code", v.exit_code},
       {"exit_signal", v.exit_signal},
       {"exit_message", v.exit_message},
       {"mpi_initialized", v.mpi_initialized},
       {"mpi_finalized", v.mpi_finalized},
       {"memory_bytes", v.memory_bytes},
       {"gate_reached_ns", v.gate_reached_ns},
       {"close_ns", v.close_ns},
       {"stopped_ns", v.stopped_ns},
       {"opened_ns", v.opened_ns},
       {"open_ns", v.open_ns},
       {"open_cpu_ns", v.open_cpu_ns},
       {"first_compute_ns", v.first_compute_ns},
       {"instructions_measured", v.instructions_measured},
       {"transfer", to_object(v.transfer)}};
}

Result<RankStatus> rank_status_from_json(const json& j) {
  RankStatus v;
  Fields f(j, "status");
  f.required("version", v.version);
  f.required("rank", v.rank);
  f.optional("pod", v.pod);
  f.required("phase", v.phase);
  f.optional("init_connected", v.init_connected);
  f.optional("epoch", v.epoch);
  f.optional("prepared_epoch", v.prepared_epoch);
  v.admitted_epoch = std::numeric_limits<std::uint64_t>::max();
  f.optional("admitted_epoch", v.admitted_epoch);
  f.optional("completed", v.completed);
  f.optional("gate_superstep", v.gate_superstep);
  f.optional("gate_committed", v.gate_committed);
  f.optional("blocked_reason", v.blocked_reason);
  f.optional("postponed", v.postponed);
  f.optional("collective", v.collective);
  f.optional("exit_code", v.exit_code);
  f.optional("exit_signal", v.exit_signal);
  f.optional("exit_message", v.exit_message);
  f.optional("mpi_initialized", v.mpi_initialized);
  f.optional("mpi_finalized", v.mpi_finalized);
  f.optional("memory_bytes", v.memory_bytes);
  f.optional("gate_reached_ns", v.gate_reached_ns);
  f.optional("close_ns", v.close_ns);
  f.optional("stopped_ns", v.stopped_ns);
  f.optional("opened_ns", v.opened_ns);
  f.optional("open_ns", v.open_ns);
  f.optional("open_cpu_ns", v.open_cpu_ns);
  f.optional("first_compute_ns", v.first_compute_ns);
  f.optional("instructions_measured", v.instructions_measured);
  BSP_TRY(v, f.done(std::move(v)));
  if (auto it = j.find("transfer"); it != j.end()) {
    BSP_TRY(v.transfer, transfer_from_json(*it, "status.transfer"));
  }
  clamp(v);
  return v;
}

void to_json(json& j, const RankReport& v) {
  json supersteps = json::array();
  for (const SuperstepReport& s : v.supersteps) supersteps.push_back(to_object(s));
  j = {{"rank", v.rank},
       {"completed", v.completed},
       {"epoch", v.epoch},
       {"memory_bytes", v.memory_bytes},
       {"supersteps", std::move(supersteps)}};
  if (v.left_out > 0) j["left_out"] = v.left_out;
}

Result<RankReport> rank_report_from_json(const json& j) {
  RankReport v;
  Fields f(j, "report");
  f.required("rank", v.rank);
  f.optional("completed", v.completed);
  f.optional("epoch", v.epoch);
  f.optional("memory_bytes", v.memory_bytes);
  f.optional("left_out", v.left_out);
  f.each("supersteps", v.supersteps, kMostRecords, superstep_from_json);
  BSP_TRY(v, f.done(std::move(v)));
  const auto wrong = [&](std::string what) {
    return fail(ErrorCode::kInvalid, std::format("the report of rank {} {}", v.rank, what));
  };
  if (v.completed > kMostSupersteps) return wrong(std::format("claims {} completed supersteps", v.completed));
  std::uint64_t last = 0;
  for (const SuperstepReport& s : v.supersteps) {
    if (s.superstep <= last || s.superstep > v.completed)
      return wrong(std::format("has superstep {} after {}, and {} were completed", s.superstep, last, v.completed));
    last = s.superstep;
    for (const std::uint64_t ns : {s.end_ns, s.compute_ns, s.comm_ns, s.edge_ns, s.instructions, s.sent_bytes})
      if (ns > kMostNs) return wrong(std::format("has a figure of {} in superstep {}", ns, s.superstep));
    for (const auto* list : {&s.recv_bytes, &s.recv_ns})
      for (const std::uint64_t figure : *list)
        if (figure > kMostNs) return wrong(std::format("has a figure of {} in superstep {}", figure, s.superstep));
  }
  return v;
}

std::size_t bytes_of(const SuperstepReport& s) {
  static const std::size_t kEmpty = to_object(SuperstepReport{}).dump().size() - 7;  // without the 7 zeros
  const auto digits = [](std::uint64_t number) {
    std::size_t n = 1;
    for (; number >= 10; number /= 10) ++n;
    return n;
  };
  std::size_t bytes = kEmpty;
  for (const std::uint64_t figure :
       {s.superstep, s.end_ns, s.instructions, s.compute_ns, s.comm_ns, s.edge_ns, s.sent_bytes})
    bytes += digits(figure);
  for (const auto* list : {&s.recv_bytes, &s.recv_ns}) {
    for (const std::uint64_t figure : *list) bytes += digits(figure) + 1;
    if (!list->empty()) --bytes;  // no comma before the first
  }
  return bytes;
}

void keep_within(RankReport& report, std::size_t bytes) {
  std::size_t used = 0, kept = 0;
  for (; kept < report.supersteps.size(); ++kept) {
    used += bytes_of(report.supersteps[kept]) + 1;
    if (kept > 0 && used > bytes) break;
  }
  report.left_out += report.supersteps.size() - kept;
  report.supersteps.resize(kept);
}

}  // namespace bsp::wire
