npu_unit_test(samples npu_samples)
