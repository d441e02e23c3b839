// Package testsource owns the tests in source files: which tests a file declares, and which file a
// failing test in an output belongs to. It finds them by patterns for common languages, and runs
// nothing. It does not know checks or verdicts.
package testsource
