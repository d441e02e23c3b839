package sandbox

func becomeProgram() {}
