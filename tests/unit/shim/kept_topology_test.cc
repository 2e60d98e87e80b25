#include "sidecar/shim/library/kept_topology.h"

#include <gtest/gtest.h>

namespace bsp::shim {
namespace {

TEST(KeptTopology, IsFreedByTheReleasesThatDoSo) {
  for (const char* version : {"OpenPMIx 5.0.10, repo rev: gitv5.0.10, (PMIx Standard: 4.2)", "OpenPMIx 5.0.11rcH",
                              "OpenPMIx 5.0.11", "5.0.12a1"})
    EXPECT_TRUE(frees_kept_topology(version)) << version;
  for (const char* version :
       {"OpenPMIx 5.0.9a1, repo rev: unknown", "OpenPMIx 5.0.7", "OpenPMIx 4.2.11", "OpenPMIx 6.0.0", "OpenPMIx 6.1.0",
        "OpenPMIx 5.1.10", "OpenPMIx 15.0.10", "OpenPMIx", "5.0", ""})
    EXPECT_FALSE(frees_kept_topology(version)) << version;
  EXPECT_FALSE(frees_kept_topology(nullptr));
}

}  // namespace
}  // namespace bsp::shim
