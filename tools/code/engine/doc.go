// Package engine owns the process in which a script of code mode runs: the language, what the
// script finds in it, its limits, and how its errors are told. It gets a script and the results of
// calls on its standard input and reports calls and outputs on its standard output; what calls do,
// it doesn't know.
package engine
