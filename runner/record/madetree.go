package record

// MadeTree says where a private work tree is.
type MadeTree struct {
	Folder      string `json:"folder,omitempty"` // empty for PrivateTree
	SandboxPath string `json:"seen"`             // the path for commands, which may have stored it in files
}

// MadeTree returns where the run's complete private work tree is. exists is false without such a tree.
func (d *Directory) MadeTree() (made MadeTree, exists bool) {
	exists, err := d.ReadJSON(MadeTreeFile, &made)
	return made, exists && err == nil
}

// RecordMadeTree records that a private work tree in folder is complete. seen is its path for
// commands.
func (d *Directory) RecordMadeTree(folder, seen string) error {
	if folder == d.Join(PrivateTree) { // not recorded as a path, because the run directory may move
		folder = ""
	}
	return d.WriteJSON(MadeTreeFile, MadeTree{folder, seen})
}
