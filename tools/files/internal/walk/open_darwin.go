package walk

// open opens a path below the folder.
func (o opener) open(path string, extra int) (*Content, error) {
	if path == "" {
		path = "."
	}
	return o.openInRoot(path, extra)
}
