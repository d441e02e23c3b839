package grants

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// UnshowableError says that a file of Folders.Shown has no place.
type UnshowableError struct{ Path string }

func (e *UnshowableError) Error() string {
	return fmt.Sprintf("%s can't be shown to commands: it is not there, and it would have to be made in a folder that commands change for all to see", e.Path)
}

// findShown writes down what commands see in the place of files, or where none is, and
// finds where that lies.
func (p *Plan) findShown() error {
	copies, err := p.folders.writeCopies("shown", p.folders.Shown)
	if err != nil {
		return err
	}
	p.shown = make(map[string]string, len(copies))
	for _, path := range slices.Sorted(maps.Keys(copies)) {
		real := layers{}.whereItWouldBe(path)
		info, err := os.Stat(real)
		switch {
		case err == nil && info.Mode().IsRegular():
			p.shown[real] = copies[path]
		case err == nil || p.home == "" || !pathname.Within(real, p.home):
			// a folder is no file, and nothing is made in folders of the machine
		case pathname.Within(real, p.writable...):
			return &UnshowableError{path}
		default:
			p.shown[real], p.made = copies[path], append(p.made, real)
		}
	}
	return nil
}

// show puts the files of Folders.Shown over what is there, also where that is hidden.
// What is not there is made in the changes of the user's folder; where there are none
// since the kernel gives no overlay, it can't be.
func (p *Plan) show() {
	for path, copied := range p.shown {
		p.put(stage.Mount{Kind: stage.Readable, Path: path, Source: copied, File: true, Optional: slices.Contains(p.made, path)})
	}
}
