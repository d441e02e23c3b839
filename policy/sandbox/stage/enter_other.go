//go:build !linux

package stage

import (
	"fmt"
	"os"
)

func enter() {
	fmt.Fprintln(os.Stderr, Name+": this system has no layers to confine with")
	os.Exit(126)
}
