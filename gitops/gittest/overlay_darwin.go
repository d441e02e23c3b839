package gittest

// inOverlay does nothing, because macOS has no overlays.
func inOverlay() {}
