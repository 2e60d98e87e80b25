#include "sidecar/shim/process/state.h"

namespace bsp::shim {

State state;

}  // namespace bsp::shim
