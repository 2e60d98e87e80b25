# The screens of kubectl-bsp and of local mode, from objects that the kernels stored; and kubectl-bsp as a program.
bsp_test(screens_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/screens/screens_golden_test.cc
                                     ${PROJECT_SOURCE_DIR}/tests/unit/reconcile/world.cc
                                     ${PROJECT_SOURCE_DIR}/tests/unit/reconcile/world_operator.cc
         DEPS bsp_screens bsp_simulated_cluster bsp_reconcile_kernel LABELS golden)
