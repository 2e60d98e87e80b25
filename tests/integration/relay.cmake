# A checkpoint between two real sidecars, on loopback; the test plays bsp-init and the operator.
bsp_test(relay_test SOURCES relay/relay_test.cc relay/fake_init.cc ../mpi/epochs/cluster.cc
         DEPS bsp_net bsp_wire bsp_collect bsp_init_control bsp_capture_client LABELS integration)
add_dependencies(relay_test bsp-sidecar)
