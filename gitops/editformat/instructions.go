package editformat

// Instructions tells a model how to write its edits, and how to ask for the rest.
func Instructions(_ Format) string { return "" }
