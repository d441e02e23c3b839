// Package filter owns the permitted system calls of commands, as seccomp(2) programs. Package stage
// installs them. It does not know files and hosts.
package filter

// Options configures the filters.
type Options struct {
	Inet       bool // internet sockets
	Namespaced bool // what the namespaces keep apart needs no refusal
	Connect    bool // sockets with names: the kernel asks nobody else where there are no namespaces
}
