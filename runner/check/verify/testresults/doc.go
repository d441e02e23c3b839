// Package testresults parses the tests in a check's output: which fail, where and why. It reads
// text and JSON of go test, TAP, pytest, the tools in the table printers, and JUnit XML. It
// compares results by test names. It reads from any io.Reader, up to fixed bounds.
//
// The input is hostile and only a claim: a check that prints "FAIL" and exits with 0 is green.
// Names and messages are single lines without control characters; callers escape them.
package testresults
