# Checkpoints: bsp-init and bsp_transfer with real CRIU in real containers.
set(checkpoint_dir ${CMAKE_BINARY_DIR}/checkpoint)

add_executable(gated ${CMAKE_CURRENT_SOURCE_DIR}/programs/gated.c)
target_link_libraries(gated PRIVATE Threads::Threads)

add_executable(files ${CMAKE_CURRENT_SOURCE_DIR}/programs/files.c)
add_executable(objects ${CMAKE_CURRENT_SOURCE_DIR}/programs/objects.c)
add_executable(guards ${CMAKE_CURRENT_SOURCE_DIR}/programs/guards.c)
target_link_libraries(guards PRIVATE Threads::Threads)
add_executable(memory ${CMAKE_CURRENT_SOURCE_DIR}/programs/memory.c)
add_executable(occupy ${CMAKE_CURRENT_SOURCE_DIR}/programs/occupy.c)
add_executable(static_hello ${CMAKE_CURRENT_SOURCE_DIR}/programs/static_hello.c)
target_link_options(static_hello PRIVATE -static)
add_library(stub_shim SHARED ${CMAKE_CURRENT_SOURCE_DIR}/programs/stub_shim.c)
bsp_not_sanitized(gated files guards memory objects occupy static_hello stub_shim)

# Mounted at /bsp in the containers: criu with its libraries, and bsp-init.
add_custom_command(
  OUTPUT ${checkpoint_dir}/runtime.stamp
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/../../sidecar/init/bundle.sh ${checkpoint_dir}/runtime bin/criu=/usr/sbin/criu
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:bsp-init> ${checkpoint_dir}/runtime/bsp-init
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:stub_shim> ${checkpoint_dir}/runtime/libbspmpi.so
  COMMAND ${CMAKE_COMMAND} -E touch ${checkpoint_dir}/runtime.stamp
  DEPENDS bsp-init stub_shim ${CMAKE_CURRENT_SOURCE_DIR}/../../sidecar/init/bundle.sh)
# A user image with libc and a shell, but nothing that criu needs.
add_custom_command(
  OUTPUT ${checkpoint_dir}/root.tar
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/make_root.sh ${checkpoint_dir} $<TARGET_FILE:gated>
          $<TARGET_FILE:files> $<TARGET_FILE:guards> $<TARGET_FILE:memory> $<TARGET_FILE:objects> $<TARGET_FILE:occupy> $<TARGET_FILE:static_hello>
  DEPENDS gated files guards memory objects occupy static_hello ${CMAKE_CURRENT_SOURCE_DIR}/make_root.sh)
add_custom_target(checkpoint_files DEPENDS ${checkpoint_dir}/runtime.stamp ${checkpoint_dir}/root.tar)

add_library(checkpoint_harness STATIC ${CMAKE_CURRENT_SOURCE_DIR}/checkpoint_harness.cc)
target_link_libraries(checkpoint_harness PUBLIC bsp_init_with_archive bsp_transfer GTest::gmock)
target_precompile_headers(checkpoint_harness REUSE_FROM bsp_test_headers)
target_compile_definitions(checkpoint_harness PRIVATE BSP_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}/../.."
                                                      BSP_BINARY_DIR="${CMAKE_BINARY_DIR}")
foreach(test checkpoint_test checkpoint_failure_test checkpoint_files_test checkpoint_objects_test init_program_test)
  bsp_test(${test} SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${test}.cc DEPS checkpoint_harness LABELS integration)
  add_dependencies(${test} checkpoint_files)
endforeach()
