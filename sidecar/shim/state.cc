#include "sidecar/shim/state.h"

namespace bsp::shim {

State state;

}  // namespace bsp::shim
