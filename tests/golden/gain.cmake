# The tables of ./dev bench gain and ./dev bench forecasts.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME gain_table COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/gain/gain_table_test.py)
set_tests_properties(gain_table PROPERTIES LABELS golden)
add_test(NAME forecasts_table COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/gain/forecasts_test.py)
set_tests_properties(forecasts_table PROPERTIES LABELS golden)
