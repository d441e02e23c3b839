// Package filter owns which calls of the kernel commands may make: it writes the
// programs of seccomp(2) that refuse the others. It installs none of them (package
// stage does), and refuses to know which files and hosts commands are to reach.
package filter

// Options say what the filters leave open.
type Options struct {
	Inet       bool // internet sockets
	Namespaced bool // what the namespaces keep apart needs no refusal
	Connect    bool // sockets with names: the kernel asks nobody else where there are no namespaces
}
