npu_unit_test(support npu_support)
npu_unit_test(tensorfile npu_support)
