# The comparison with the published tables: reading, running, judging, reporting.
bsp_test(sim_reproduce_test
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_tables_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_statements_test.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_report_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/reproduce_runs_test.cc
  DEPS bsp_sim_reproduce LABELS sim)
