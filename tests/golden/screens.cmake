# The screens of kubectl-bsp and of local mode, from objects that the kernels stored; and kubectl-bsp as a program.
bsp_test(screens_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/screens/screens_golden_test.cc
                                     ${PROJECT_SOURCE_DIR}/tests/unit/reconcile/world.cc
                                     ${PROJECT_SOURCE_DIR}/tests/unit/reconcile/world_operator.cc
         DEPS bsp_screens bsp_simulated_cluster bsp_reconcile_kernel LABELS golden)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME kubectl_plugin
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/screens/kubectl_plugin_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(kubectl_plugin PROPERTIES LABELS golden)
