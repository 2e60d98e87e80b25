// The id that the linker gives a program or library, which is another one for each other content.
#pragma once

#include <string>

namespace bsp {

// In hex; "": the file can't be read, is no 64-bit ELF file, or has none.
std::string build_id_of(const std::string& file);

}  // namespace bsp
