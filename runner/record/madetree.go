package record

// MadeTree says where a private work tree is.
type MadeTree struct {
	Folder string `json:"folder,omitempty"` // empty for PrivateTree
	Seen   string `json:"seen"`             // by commands, which may have kept that path
}

// MadeTree returns where the private work tree of the run is, once it is whole.
func (d *Directory) MadeTree() (made MadeTree, is bool) {
	is, err := d.ReadJSON(MadeTreeFile, &made)
	return made, is && err == nil
}

// PutMadeTree notes that the tree in a folder is whole.
func (d *Directory) PutMadeTree(folder, seen string) error {
	if folder == d.Join(PrivateTree) { // the run directory may move
		folder = ""
	}
	return d.WriteJSON(MadeTreeFile, MadeTree{folder, seen})
}
