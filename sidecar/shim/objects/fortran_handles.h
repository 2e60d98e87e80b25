// Fortran numbers of handles.
#pragma once

namespace bsp::shim {

// MPI has opened: takes note of its predefined objects' numbers.
void note_predefined_numbers();

}  // namespace bsp::shim
