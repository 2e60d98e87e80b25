bsp_test(convert_golden_test SOURCES convert/convert_golden_test.cc DEPS bsp_convert LABELS golden)
