// Package repl owns js_repl, which runs JavaScript in a persistent Node process, and js_repl_reset.
// It knows the code's form, the kernel and its protocol. Package tools makes the code's calls; this
// package does not know their arguments or rules.
//
// The kernel runs in the sandbox with commands' rights. Its output is untrusted.
package repl
