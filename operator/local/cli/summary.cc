#include "operator/local/cli/summary.h"

#include <algorithm>
#include <filesystem>
#include <format>
#include <iterator>
#include <map>

#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "base/json/utf8.h"
#include "crds/names.h"
#include "crds/seat.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::local {

using nlohmann::json;

namespace {

constexpr auto kLastLines = std::chrono::seconds(10);

json number_or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

}  // namespace

json summary_of(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations, Time running,
                const std::string& rank0_output) {
  json lines = json::array();
  for (std::size_t begin = 0; begin < rank0_output.size();) {
    const std::size_t end = std::min(rank0_output.find('\n', begin), rank0_output.size());
    lines.push_back(as_text(std::string_view(rank0_output).substr(begin, end - begin)));
    begin = end + 1;
  }
  json moves = json::array();
  std::map<std::uint64_t, json> waves;  // by epoch
  for (const crds::RankMigration& m : migrations) {
    const auto& s = m.status;
    moves.push_back({{"rank", m.spec.rank.value},
                     {"from", s.source_set},
                     {"to", s.target_set},
                     {"phase", crds::to_string(s.phase)},
                     {"message", s.message},
                     {"predicted_gain_s", number_or_null(s.predicted_gain_seconds)},
                     {"realised_gain_s", number_or_null(s.realised_gain_seconds)},
                     {"realised_gain_error_s", number_or_null(s.realised_gain_error_seconds)},
                     {"bytes", s.bytes}});
    json& wave = waves[s.to_epoch];
    if (wave.is_null())
      wave = {{"epoch", s.to_epoch},
              {"moves", 0},
              {"pause_ms", s.pause.total_ms},
              {"parts_ms",
               {{"gate", s.pause.gate_ms},
                {"close", s.pause.close_ms},
                {"dump", s.pause.dump_ms},
                {"transfer", s.pause.transfer_ms},
                {"restore", s.pause.restore_ms},
                {"commit", s.pause.commit_ms},
                {"open", s.pause.open_ms}}}};
    wave["moves"] = wave["moves"].get<int>() + 1;
  }
  json wave_list = json::array();
  for (auto& [epoch, wave] : waves) wave_list.push_back(std::move(wave));
  const bool ran = running != Time{} && job.status.completion_time > running;
  return {{"phase", crds::to_string(job.status.phase)},
          {"message", job.status.message},
          {"makespan_s", ran ? json(to_seconds(job.status.completion_time - running)) : json()},
          {"supersteps", job.status.superstep.value},
          {"rank0_output", std::move(lines)},
          {"migrations", std::move(moves)},
          {"waves", std::move(wave_list)}};
}

namespace {

// The logs of a rank's own pods, in order.
std::vector<SeatLog> logs_of_pods(const std::string& log_dir, const crds::BspJob& job, std::uint32_t rank) {
  std::vector<SeatLog> logs;
  for (std::uint32_t g = 0; g < job.status.ranks[rank].generation; ++g)
    logs.push_back(
        {std::format("{}/{}/{}.log", log_dir, reconcile::pod_name(job.metadata.name, rank, g), names::kAppContainer),
         rank});
  return logs;
}

// The logs of all seats, in the order in which the pods were created: a rank may have been in any.
std::vector<SeatLog> logs_of_seats(const std::string& log_dir, const crds::BspJob& job) {
  std::map<std::string, std::vector<SeatLog>> by_time;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(log_dir, none)) {
    const auto text = read_file(entry.path() / "pod.json");
    const json pod = text ? json::parse(*text, nullptr, false) : json();
    const json& metadata = part_at(pod, "metadata");
    if (text_at(part_at(metadata, "labels"), names::kLabelJob) != job.metadata.name) continue;
    const std::vector<std::uint32_t> ranks = reconcile::request_of(pod).ranks();
    const std::string name = text_at(metadata, "name");
    std::vector<SeatLog>& of_pod = by_time[text_at(metadata, "creationTimestamp") + name];
    for (std::uint32_t local = 0; local < ranks.size(); ++local)
      of_pod.push_back({std::format("{}/{}/{}.log", log_dir, name, container_of(local)), ranks[local]});
  }
  std::vector<SeatLog> logs;
  for (auto& [time, of_pod] : by_time) std::ranges::move(of_pod, std::back_inserter(logs));
  return logs;
}

}  // namespace

std::vector<SeatLog> rank_logs(const std::string& log_dir, const crds::BspJob& job, std::uint32_t rank) {
  if (rank >= job.status.ranks.size()) return {};
  return crds::most_seats(job) == 1 ? logs_of_pods(log_dir, job, rank) : logs_of_seats(log_dir, job);
}

Result<bool> has_all_output(Store& store, const crds::BspJob& job, std::uint32_t rank, Time now) {
  if (job.status.phase != crds::JobPhase::kSucceeded) return crds::is_finished(job.status.phase);
  if (rank >= job.status.ranks.size() || now > job.status.completion_time + kLastLines) return true;
  const auto pod = store.get({kPod, job.metadata.name_space, job.status.ranks[rank].pod});
  if (!pod) return pod.error().code == ErrorCode::kNotFound ? Result<bool>(true) : std::unexpected(pod.error());
  for (const json& container : part_at(part_at(*pod, "status"), "containerStatuses"))
    if (text_at(container, "name") == container_of(job.status.ranks[rank].local))
      return part_at(part_at(container, "state"), "terminated").is_object();
  return false;
}

}  // namespace bsp::local
