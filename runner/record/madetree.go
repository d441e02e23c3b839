package record

// PrivateTreeInfo is the place of a private work tree, a copy of the checkout for commands.
type PrivateTreeInfo struct {
	Folder      string `json:"folder,omitempty"` // empty for PrivateTree
	SandboxPath string `json:"seen"`             // the path for commands, which may have stored it in files
}

// FindPrivateTree returns the place of the run's private work tree. exists is false if the run has no
// complete one.
func (d *Directory) FindPrivateTree() (made PrivateTreeInfo, exists bool) {
	exists, err := d.ReadJSON(PrivateTreeFile, &made)
	return made, exists && err == nil
}

// RecordPrivateTree records that the private work tree in folder is complete. seen is its path for commands.
func (d *Directory) RecordPrivateTree(folder, seen string) error {
	if folder == d.Join(PrivateTree) { // not recorded as a path, because the run directory may move
		folder = ""
	}
	return d.WriteJSON(PrivateTreeFile, PrivateTreeInfo{folder, seen})
}
