// Package filter owns the permitted system calls of commands, as seccomp(2) programs. Package stage
// installs them. It does not know files and hosts.
package filter

// Options configures the filters.
type Options struct {
	Inet       bool // internet sockets
	Namespaced bool // namespaces isolate IPC, so its calls need no refusal
	Connect    bool // permits connect(2) and Unix datagrams, which nothing else restricts without namespaces
}
