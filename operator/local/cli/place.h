// What the commands share: the store they work on.
#pragma once

#include <memory>
#include <string>

#include "operator/cli/command.h"
#include "operator/local/store.h"

namespace bsp::local {

struct Place {
  std::string root = "/run/bsp-operator";
  std::string name_space = "default";
};

// Declares -n/--namespace and --store.
void declare_place(cli::Command& command, Place& place);

// The namespace's store, with admission. kRefused if not root. kNotFound if nothing was ever run there, because a command
// that only reads must not create a store.
Result<std::unique_ptr<Store>> open_store(const Place& place);

// The only job of the store, or the one called `name`; the error lists the jobs.
Result<kube::Object> find_job(Store& store, const std::string& name);

}  // namespace bsp::local
