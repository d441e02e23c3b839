package gittest

// memory returns "": there is no folder in memory.
func memory() string { return "" }
