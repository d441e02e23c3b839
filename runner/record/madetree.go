package record

// MadeTree is the place of a private work tree.
type MadeTree struct {
	Folder      string `json:"folder,omitempty"` // empty for PrivateTree
	SandboxPath string `json:"seen"`             // by commands, which may have kept that path
}

// MadeTree returns the place of the run's complete private work tree.
func (d *Directory) MadeTree() (made MadeTree, is bool) {
	is, err := d.ReadJSON(MadeTreeFile, &made)
	return made, is && err == nil
}

// RecordMadeTree records a complete tree in a folder.
func (d *Directory) RecordMadeTree(folder, seen string) error {
	if folder == d.Join(PrivateTree) { // the run directory may move
		folder = ""
	}
	return d.WriteJSON(MadeTreeFile, MadeTree{folder, seen})
}
