// The types of a pod template's fields (core/v1 of Kubernetes 1.36): those that the operator and its local node read, and
// their siblings. An API server checks them only when the first pod is created.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::crds {

enum class Shape {
  kText,
  kFlag,
  kNumber,      // whole
  kQuantity,    // 512Mi, or a number; its text is checked
  kTexts,       // a list of strings
  kNumbers,     // a list of whole numbers
  kTextMap,     // labels
  kQuantities,  // a map of quantities
  kObject,
  kObjects,  // a list of objects
};

struct Field {
  std::string_view name;
  Shape shape;
  std::span<const Field> fields = {};  // of the object, or of each object of the list; empty: any
  bool closed = false;                 // other fields are errors
};

// The template itself.
extern const Field kPodTemplate;
// Requests and limits of a container.
extern const Field kContainerResources;

// A null counts as absent, as in Kubernetes: null members are removed, and become "" in a map of strings. A number such
// as 4.0 becomes 4 where it has to be whole. A null in a list stays, so that check_shape() can report it.
void normalise(nlohmann::json& value, const Field& field);
// Removes the fields that check_shape() would report as unknown, as an API server does; `dropped` gets the path of each that
// isn't null, and "unknown field" with what it may have been meant to be.
using Dropped = std::function<void(const std::string& path, const std::string& why)>;
void drop_unknown(nlohmann::json& value, const Field& field, const std::string& path, const Dropped& dropped);
// kInvalid with the path of the first field that is unknown or has the wrong type, and the remedy.
Result<void> check_shape(const nlohmann::json& value, const Field& field, const std::string& path);
// kInvalid if it is nested deeper than any pod, because copying and writing it recurse.
Result<void> check_nesting(const nlohmann::json& value, const std::string& path);

}  // namespace bsp::crds
