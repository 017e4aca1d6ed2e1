npu_unit_test(compile npucc_lib)
