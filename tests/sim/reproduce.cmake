# The comparison with the published tables: reading, running, judging, reporting.
bsp_test(sim_reproduce_test
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_tables_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_statements_test.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_comparison_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_runs_test.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_held_out_test.cc
  DEPS bsp_sim_reproduce LABELS sim)

# The pages and figures that Python makes of the results.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME sim_pages COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/page_test.py)
set_tests_properties(sim_pages PROPERTIES LABELS sim)
