npu_unit_test(textcheck npu_support)
target_sources(test_textcheck PRIVATE ../support/textcheck.c ../support/expected.c)
