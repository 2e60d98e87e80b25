# What crosses a process boundary as JSON, byte for byte: a peer of another version reads it.
bsp_test(wire_golden_test SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/wire/wire_golden_test.cc DEPS bsp_crds LABELS golden)
