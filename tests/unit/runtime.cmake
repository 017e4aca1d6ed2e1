npu_unit_test(runtime npurt)
npu_unit_test(runtime_exec npurt m)
npu_unit_test(runtime_vx npurt m)
npu_unit_test(runtime_check npurt)
