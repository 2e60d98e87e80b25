# Real sidecars on loopback that lose their operator; the test plays bsp-init, the operator and the network.
bsp_test(fencing_test SOURCES fencing/fencing_test.cc relay/fake_init.cc ../mpi/epochs/cluster.cc
         DEPS bsp_net bsp_wire bsp_collect bsp_init_control LABELS integration)
# The same with real bsp-inits, whose sidecars the test kills.
bsp_test(dead_man_test SOURCES fencing/dead_man_test.cc ../mpi/epochs/cluster.cc
         DEPS bsp_net bsp_wire bsp_collect LABELS integration)
target_compile_definitions(dead_man_test PRIVATE BSP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_dependencies(fencing_test bsp-sidecar)
add_dependencies(dead_man_test bsp-sidecar bsp-init stamper)
