// What the commands have in common: their options, the store they speak of.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "operator/arguments.h"
#include "operator/local/store.h"

namespace bsp::local {

// Every command has -n/--namespace, and --store DIR for another place than /run/bsp-operator. kInvalid with the usage.
Result<Args> parse_args(std::span<const std::string> args, Syntax syntax);

// The namespace's store, with admission. kRefused if not root, kNotFound if nothing was ever run there: a look must not
// make one.
Result<std::unique_ptr<Store>> open_store(const Args& args);

// The only job there is, or the one called `name`; the error lists what there is.
Result<kube::Object> find_job(Store& store, const std::string& name);

}  // namespace bsp::local
