// What the commands have in common: words and options, the store they speak of, how errors are told.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/local/store.h"

namespace bsp::local {

struct Args {
  std::vector<std::string> words;
  std::map<std::string, std::string> options;  // long names without the dashes
  [[nodiscard]] bool has(const std::string& name) const { return options.contains(name); }
  [[nodiscard]] std::string get(const std::string& name, const std::string& otherwise = "") const;
};

struct Syntax {
  const char* usage;
  std::map<std::string, std::string> valued = {};  // "-o" -> "output"; "--output" follows from it
  std::map<std::string, std::string> flags = {};   // "-w" -> "watch"
};

// Every command has -n/--namespace, and --store DIR for another place than /run/bsp-operator. kInvalid with the usage.
Result<Args> parse_args(std::span<const std::string> args, const Syntax& syntax);

// The namespace's store, with admission. kRefused if not root, kNotFound if nothing was ever run there: a look must not
// make one.
Result<std::unique_ptr<Store>> open_store(const Args& args);

// The only job there is, or the one called `name`; the error lists what there is.
Result<kube::Object> find_job(Store& store, const std::string& name);

// Prints "bsp-operator: …" to stderr; 2 for kInvalid, else 1.
int told(const Error& error);

}  // namespace bsp::local
