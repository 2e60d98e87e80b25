// Error classes, codes and strings that the program adds to MPI's own.
//
// MPI forgets them when the session closes and numbers them in call order: repeating the calls in the next epoch
// gives the same numbers.
#pragma once

namespace bsp::shim {

void repeat_error_codes();

// The value of the attribute MPI_LASTUSEDCODE.
int* last_used_error_code();

}  // namespace bsp::shim
