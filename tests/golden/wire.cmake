# JSON that crosses a process boundary, byte for byte: a peer of another version parses it.
bsp_test(wire_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/wire/wire_golden_test.cc DEPS bsp_crds bsp_migrate LABELS golden)
