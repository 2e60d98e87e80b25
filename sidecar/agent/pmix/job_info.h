// What PMIx provides to the ranks of an epoch about their job: its size, and where each rank is.
//
// Every pod is a node, named after its lowest rank ("rank0", "rank4", …), whatever the real placement: Open MPI shares
// memory only within a pod, and only until the epoch ends, so that a move breaks nothing.
#pragma once

#include <pmix.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sidecar/agent/pmix/placement.h"

namespace bsp::pmix {

// An array of pmix_info_t that releases its contents.
class InfoList {
 public:
  InfoList() = default;
  InfoList(InfoList&&) noexcept = default;
  InfoList& operator=(InfoList&&) = delete;
  ~InfoList();

  void add(const char* key, const void* value, pmix_data_type_t type);
  void add(const char* key, const char* text) { add(key, text, PMIX_STRING); }
  void add(const char* key, std::uint32_t number) { add(key, &number, PMIX_UINT32); }

  [[nodiscard]] pmix_info_t* data() { return items_.data(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

 private:
  std::vector<pmix_info_t> items_;
};

// For the ranks of `server`.
InfoList job_info(const std::string& name_space, const Placement& placement, std::uint32_t server);

}  // namespace bsp::pmix
