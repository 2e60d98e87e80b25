# The generated wrapper of one MPI function, for people to read.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME generated_wrapper
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/shim/wrapper_golden_test.py
                 ${CMAKE_BINARY_DIR}/sidecar/shim/generated)
set_tests_properties(generated_wrapper PROPERTIES LABELS golden)
