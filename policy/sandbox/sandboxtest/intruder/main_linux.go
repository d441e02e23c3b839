// Command intruder is what the batteries of whole runs have around agent-ci and
// inside of it. Outside, host inhabits the world that is attacked, takes layers
// away and runs agent-ci. Inside, attack makes every attempt, disturb changes
// files, and poison those of caches. It refuses to know what a breach is: who looks from outside knows.
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
