// Package environment removes the variable MCPGODEBUG. The protocol library reads it before main, and
// panics if it is malformed. So an init function must remove it before the library is initialised. Go
// initialises packages in the order of their import paths (Go specification, "Program initialization"),
// and this path comes before the library's. The package only imports os, so nothing delays it.
package environment

import "os"

func init() { os.Unsetenv("MCPGODEBUG") }
