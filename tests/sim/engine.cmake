# The simulator itself: one superstep, whole runs, platforms, and the command.
set(engine ${CMAKE_CURRENT_SOURCE_DIR}/engine)
bsp_test(sim_engine_test SOURCES ${engine}_superstep_test.cc ${engine}_scenario_test.cc ${engine}_platform_test.cc
         DEPS bsp_sim bsp_record LABELS sim)
bsp_test(sim_command_test SOURCES ${engine}_command_test.cc DEPS bsp_sim_cli bsp_record LABELS sim)
add_dependencies(sim_command_test bsp-simulate bsp-operator)
