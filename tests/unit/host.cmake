npu_unit_test(host npu_backend_host)
