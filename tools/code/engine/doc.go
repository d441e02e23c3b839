// Package engine is the process of one code mode script: the language, its environment, limits and
// errors. It reads the script and results of calls from standard input and writes calls and output
// to standard output. It does not know what calls do.
package engine
