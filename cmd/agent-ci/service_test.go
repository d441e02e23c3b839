package main_test

import (
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

var serviceCommands = map[string]func(*testscript.TestScript, bool, []string){
	"keeper":    usage("", placeHelper("keeper")),
	"listening": usage("VARIABLE ANSWER", startListening),
}

// startListening answers each line at a port of the machine, which the variable names:
// listening VARIABLE ANSWER.
func startListening(ts *testscript.TestScript, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				line := make([]byte, 1<<10)
				if n, _ := conn.Read(line); n > 0 {
					fmt.Fprintf(conn, "%s to %s\n", args[1], strings.TrimSpace(string(line[:n])))
				}
			})
		}
	})
	ts.Defer(func() { _ = l.Close(); work.Wait() })
	ts.Setenv(args[0], fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
}
