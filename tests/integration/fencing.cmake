# Real sidecars on loopback that the operator leaves alone; the test plays bsp-init, the operator and the network.
bsp_test(fencing_test SOURCES fencing/fencing_test.cc relay/fake_init.cc ../mpi/epochs/cluster.cc
         DEPS bsp_net bsp_wire bsp_collect bsp_init_control LABELS integration)
add_dependencies(fencing_test bsp-sidecar)
