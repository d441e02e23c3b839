package gittest

// inOverlay does nothing: there are no overlays here.
func inOverlay() {}
