// Package testsource owns the tests in source files: which tests a file declares, and in which file a test
// stands that an output names. It reads texts by patterns of common languages, and runs nothing. It does
// not know checks or verdicts.
package testsource
