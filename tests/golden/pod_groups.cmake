# PodGroups and the pods that name them, for each scheduler, and whether the schedulers' own types hold them.
bsp_test(pod_groups_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/pod_groups/pod_groups_golden_test.cc
         DEPS bsp_reconcile_kernel LABELS golden)
add_test(NAME pod_groups.decode COMMAND ${PROJECT_SOURCE_DIR}/tests/on_host.sh
                                        ${CMAKE_CURRENT_SOURCE_DIR}/pod_groups/decode.sh)
set_tests_properties(pod_groups.decode PROPERTIES LABELS "golden;machine" TIMEOUT 900 SKIP_RETURN_CODE 77)
