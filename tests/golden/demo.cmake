# The demo's final table, for successful and for failed runs.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME demo_table COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/demo/demo_table_test.py)
set_tests_properties(demo_table PROPERTIES LABELS golden)
