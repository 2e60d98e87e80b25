# Output of the operator for other readers: a rank's Pod, the plan as text, `describe`.
bsp_test(operator_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/operator/operator_golden_test.cc
         DEPS bsp_shell bsp_local_show bsp_manifest LABELS golden)
