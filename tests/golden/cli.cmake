# Command lines of bsp-operator: exit status, messages, and that --help lists every option.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME command_lines
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/cli/cli_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(command_lines PROPERTIES LABELS golden)
