#include "sidecar/agent/pmix/job_info.h"

#include <pmix_server.h>

#include <cstdlib>
#include <format>
#include <map>

namespace bsp::pmix {
namespace {

std::string node_of(std::uint32_t server) { return std::format("rank{}", server); }

std::string list(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) text += std::format("{}{}", text.empty() ? "" : ",", rank);
  return text;
}

}  // namespace

InfoList::~InfoList() {
  for (pmix_info_t& item : items_) PMIX_INFO_DESTRUCT(&item);
}

void InfoList::add(const char* key, const void* value, pmix_data_type_t type) {
  pmix_info_t& item = items_.emplace_back();
  PMIX_INFO_CONSTRUCT(&item);
  PMIX_INFO_LOAD(&item, key, value, type);
}

InfoList job_info(const std::string& name_space, const Placement& placement, std::uint32_t server) {
  const std::uint32_t size = placement.size();
  std::map<std::uint32_t, std::vector<std::uint32_t>> nodes;  // by server
  for (std::uint32_t r = 0; r < size; ++r) nodes[placement.server_of[r]].push_back(r);
  std::string names, ranks_per_node;
  for (const auto& [node, ranks] : nodes) {
    names += std::format("{}{}", names.empty() ? "" : ",", node_of(node));
    ranks_per_node += std::format("{}{}", ranks_per_node.empty() ? "" : ";", list(ranks));
  }
  char* node_map = nullptr;
  char* proc_map = nullptr;
  PMIx_generate_regex(names.c_str(), &node_map);
  PMIx_generate_ppn(ranks_per_node.c_str(), &proc_map);

  const std::vector<std::uint32_t>& local = nodes[server];
  InfoList info;
  info.add(PMIX_UNIV_SIZE, size);
  info.add(PMIX_JOB_SIZE, size);
  info.add(PMIX_MAX_PROCS, size);
  info.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(nodes.size()));
  info.add(PMIX_JOB_NUM_APPS, 1u);
  info.add(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(local.size()));
  info.add(PMIX_LOCAL_PEERS, list(local).c_str());
  info.add(PMIX_NODE_MAP, node_map, PMIX_REGEX);
  info.add(PMIX_PROC_MAP, proc_map, PMIX_REGEX);
  info.add(PMIX_JOBID, name_space.c_str());
  std::free(node_map);
  std::free(proc_map);

  std::uint32_t node_number = 0;
  for (const auto& [node, ranks] : nodes) {
    std::uint16_t among_local = 0;  // btl/sm indexes its peers by it
    for (const pmix_rank_t number : ranks) {
      InfoList of_rank;
      of_rank.add(PMIX_RANK, &number, PMIX_PROC_RANK);
      of_rank.add(PMIX_GLOBAL_RANK, &number, PMIX_PROC_RANK);
      of_rank.add(PMIX_APPNUM, 0u);
      of_rank.add(PMIX_LOCAL_RANK, &among_local, PMIX_UINT16);
      of_rank.add(PMIX_NODE_RANK, &among_local, PMIX_UINT16);
      of_rank.add(PMIX_HOSTNAME, node_of(node).c_str());
      of_rank.add(PMIX_NODEID, node_number);
      pmix_data_array_t array{.type = PMIX_INFO, .size = of_rank.size(), .array = of_rank.data()};
      info.add(PMIX_PROC_DATA, &array, PMIX_DATA_ARRAY);  // copies
      ++among_local;
    }
    ++node_number;
  }
  return info;
}

}  // namespace bsp::pmix
