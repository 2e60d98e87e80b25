// Keys of window attributes. The attributes are MPI's, because a window doesn't outlive its epoch; the keys are the
// program's, and do.
#pragma once

namespace bsp::shim {

// MPI's keyval in this epoch; `keyval` itself if it isn't one that the program created in C.
int real_window_keyval(int keyval);

}  // namespace bsp::shim
