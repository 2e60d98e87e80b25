# The sources' workloads and platforms against values computed by hand, and Charm++'s strategies.
bsp_test(sim_applications_test
  SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/applications_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/applications_platforms_test.cc
          ${CMAKE_CURRENT_SOURCE_DIR}/grid5000_test.cc ${CMAKE_CURRENT_SOURCE_DIR}/yardsticks_test.cc
  DEPS bsp_sim_applications bsp_sim_grid5000 bsp_sim_yardsticks LABELS sim)
