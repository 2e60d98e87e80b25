# Everything but main(), so that tests can hold a Sidecar too.
bsp_library(sidecar SOURCES config.cc control_server.cc epochs.cc fence.cc files.cc gate.cc liveness.cc program.cc sidecar.cc
                            transfer_threads.cc transfers.cc verbs.cc
            DEPS bsp_net bsp_wire bsp_pmix bsp_collect bsp_init_control bsp_transfer)
add_executable(bsp-sidecar main.cc $<TARGET_OBJECTS:bsp_nodelay>)
target_link_libraries(bsp-sidecar PRIVATE bsp_sidecar)
set_target_properties(bsp-sidecar PROPERTIES BSP_STATIC_TLS ON)
target_link_options(bsp-sidecar PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
