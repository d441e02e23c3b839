// Package testresults reads what the output of a check says of tests: which of them
// fail, where and why. It knows the text and the JSON of go test, TAP, pytest, jest,
// what the tools of the table printers print and JUnit's XML,
// and compares two results by the names of
// tests. It reads an io.Reader in bounds and refuses to know where that comes from.
//
// What is read is hostile, and a claim: a check that prints "FAIL" and exits with 0 is
// green. Names and messages are one line each without control characters; whoever shows
// them escapes them for the place.
package testresults
