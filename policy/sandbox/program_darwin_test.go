package sandbox

func becomeProgram() {}

func removeProgram() {}
