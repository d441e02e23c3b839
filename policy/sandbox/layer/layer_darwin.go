package layer

import "context"

// Copy fails: there are no overlays here.
func Copy(context.Context, string, string) error {
	return &ForkError{"this system has no overlays"}
}

// AwaitUnmounted returns at once: macOS has no overlays.
func AwaitUnmounted(context.Context, string) error { return nil }

// Merge fails: there are no overlays here.
func Merge(context.Context, string, string) error {
	return &ForkError{"this system has no overlays"}
}

// CopyFolder fails: there are no overlays here.
func CopyFolder(context.Context, string, string, string) error {
	return &ForkError{"this system has no overlays"}
}
