// The tree's own CRDs, given to an API server as `kubectl create -f crds` does.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/core/read_file.h"
#include "base/json/yaml.h"
#include "operator/kube/client.h"

namespace bsp::controller {

inline void install_crds(kube::Client& client) {
  for (const char* name : {"bspjob", "rankmigration"}) {
    const auto text = read_file(std::string(BSP_SOURCE_DIR "/crds/") + name + ".yaml");
    ASSERT_TRUE(text);
    const auto documents = read_yaml(*text);
    ASSERT_TRUE(documents);
    ASSERT_TRUE(client.create(documents->at(0)));
  }
}

}  // namespace bsp::controller
