#include "sidecar/agent/pmix/job_info.h"

#include <pmix_server.h>

#include <cstdlib>
#include <format>

namespace bsp::pmix {
namespace {

std::string node_of(std::uint32_t rank) { return std::format("rank{}", rank); }

}  // namespace

InfoList::~InfoList() {
  for (pmix_info_t& item : items_) PMIX_INFO_DESTRUCT(&item);
}

void InfoList::add(const char* key, const void* value, pmix_data_type_t type) {
  pmix_info_t& item = items_.emplace_back();
  PMIX_INFO_CONSTRUCT(&item);
  PMIX_INFO_LOAD(&item, key, value, type);
}

InfoList job_info(const std::string& name_space, std::uint32_t rank, std::uint32_t size) {
  std::string nodes, ranks_per_node;
  for (std::uint32_t r = 0; r < size; ++r) {
    nodes += std::format("{}{}", r ? "," : "", node_of(r));
    ranks_per_node += std::format("{}{}", r ? ";" : "", r);
  }
  char* node_map = nullptr;
  char* proc_map = nullptr;
  PMIx_generate_regex(nodes.c_str(), &node_map);
  PMIx_generate_ppn(ranks_per_node.c_str(), &proc_map);

  InfoList info;
  info.add(PMIX_UNIV_SIZE, size);
  info.add(PMIX_JOB_SIZE, size);
  info.add(PMIX_MAX_PROCS, size);
  info.add(PMIX_NUM_NODES, size);
  info.add(PMIX_JOB_NUM_APPS, 1u);
  info.add(PMIX_LOCAL_SIZE, 1u);
  info.add(PMIX_LOCAL_PEERS, std::format("{}", rank).c_str());
  info.add(PMIX_NODE_MAP, node_map, PMIX_REGEX);
  info.add(PMIX_PROC_MAP, proc_map, PMIX_REGEX);
  info.add(PMIX_JOBID, name_space.c_str());
  std::free(node_map);
  std::free(proc_map);

  for (std::uint32_t r = 0; r < size; ++r) {
    InfoList of_rank;
    pmix_rank_t number = r;
    std::uint16_t first = 0;
    of_rank.add(PMIX_RANK, &number, PMIX_PROC_RANK);
    of_rank.add(PMIX_GLOBAL_RANK, &number, PMIX_PROC_RANK);
    of_rank.add(PMIX_APPNUM, 0u);
    of_rank.add(PMIX_LOCAL_RANK, &first, PMIX_UINT16);
    of_rank.add(PMIX_NODE_RANK, &first, PMIX_UINT16);
    of_rank.add(PMIX_HOSTNAME, node_of(r).c_str());
    of_rank.add(PMIX_NODEID, r);
    pmix_data_array_t array{.type = PMIX_INFO, .size = of_rank.size(), .array = of_rank.data()};
    info.add(PMIX_PROC_DATA, &array, PMIX_DATA_ARRAY);  // copies
  }
  return info;
}

}  // namespace bsp::pmix
