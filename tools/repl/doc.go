// Package repl owns js_repl, by which a model runs JavaScript in a process of Node that keeps what
// the code defines, and js_repl_reset. It knows the code's form, the kernel and the lines that it
// speaks; what the code asks of other tools is made by package tools, and it knows neither their
// arguments nor the rules on them.
//
// The kernel runs in the sandbox, with the rights of commands: nothing that it writes is believed.
package repl
