package sandbox

import "testing"

func becomeProgram() {}

func removeProgram() {}

func eachConfined(*testing.T, func(*testing.T, *Sandbox, Options)) {}
