package gittest

// memory returns "", because macOS has no folder in memory.
func memory() string { return "" }
