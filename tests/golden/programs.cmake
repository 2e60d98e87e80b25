# What tests and benchmarks with programs of other people make of them.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME attempts COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/programs/attempts_test.py)
set_tests_properties(attempts PROPERTIES LABELS golden)
