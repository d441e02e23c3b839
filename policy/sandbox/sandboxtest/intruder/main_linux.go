// Command intruder attacks a sandbox in tests of whole runs. Outside of the sandbox, host creates the
// attacked world, disables layers and runs agent-ci. Inside, attack makes every attempt, disturb changes
// files, and poison changes caches. It does not judge the results of disturb and poison: the test
// compares files from outside.
package main

import (
	"fmt"
	"os"
)

// roles maps names to the program's roles.
var roles = map[string]func(args []string) error{
	"host": host, "attack": attack, "attempt": attempt, "linger": linger, "disturb": disturb, "poison": poison,
}

func main() {
	if len(os.Args) < 2 || roles[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: intruder host|attack|attempt|linger|disturb|poison ARGUMENT…")
		os.Exit(2)
	}
	if err := roles[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "intruder %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
