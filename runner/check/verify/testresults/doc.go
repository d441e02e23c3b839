// Package testresults parses tests in a check's output: which fail, where and why. It reads text
// and JSON of go test, TAP, pytest, the tools in the table printers, and JUnit XML, and
// compares results by test names. Its reads are bounded and from any io.Reader.
//
// The input is hostile and only a claim: a check that prints "FAIL" and exits with 0 is green. Names and messages are single lines without control
// characters; callers escape them.
package testresults
