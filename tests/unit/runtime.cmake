npu_unit_test(runtime npurt)
npu_unit_test(runtime_exec npurt m)
