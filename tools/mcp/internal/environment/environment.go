// Package environment keeps MCPGODEBUG from changing or crashing the protocol library, which reads
// the variable before main and panics if it is malformed. This needs the only init with an effect.
// Packages ready for initialisation are initialised in path order (Go specification, "Program
// initialization"), and this path precedes the library's; a test of package mcp starts a program
// with the variable set.
//
// It only imports os, so nothing delays it.
package environment

import "os"

func init() { os.Unsetenv("MCPGODEBUG") }
