#ifndef TESTS_E2E_ORACLE_INTERNAL_H
#define TESTS_E2E_ORACLE_INTERNAL_H
#include "tests/e2e/oracle.h"
bool ora_next(const Ora *t, int64_t *at); /* steps through t's coordinates; false after the last */
int64_t ora_at(const Ora *t, const int64_t *at);
void ora_set(Ora *t, int64_t i, double v, double mag);
#endif
