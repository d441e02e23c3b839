// Package environment keeps MCPGODEBUG from changing how the library of the protocol behaves, or
// from ending the program: the library reads the variable before main begins, and panics where it
// is not of its form. So this is the one init with an effect. Packages that can be initialised are
// initialised in the order of their paths (Go specification, "Program initialization"), and this
// path stands before the library's; a test of package mcp starts a program with the variable set.
//
// It imports nothing but os, so that nothing holds it up.
package environment

import "os"

func init() { os.Unsetenv("MCPGODEBUG") }
