// Package bench measures the built program from outside: time from start to
// exit, peak memory, cost of a turn, and of a change in a large repository. It
// has benchmarks only; make bench runs them and prints one table. No test
// depends on a figure.
package bench
