package grants

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// UnshowableError reports a file of Folders.Shown without a place.
type UnshowableError struct{ Path string }

func (e *UnshowableError) Error() string {
	return fmt.Sprintf("%s can't be shown to commands: it is not there, and it would have to be made in a folder that commands change for all to see", e.Path)
}

// findShown writes the replacement files and finds their places.
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
			// A folder is no file, and nothing is created in the machine's folders.
		case pathname.Within(real, p.writable...):
			return &UnshowableError{path}
		default:
			p.shown[real], p.made = copies[path], append(p.made, real)
		}
	}
	return nil
}

// show mounts the files of Folders.Shown, even over hidden ones. Missing files are created in
// private changes of home, which requires an overlay.
func (p *Plan) show() {
	for path, copied := range p.shown {
		p.put(stage.Mount{Kind: stage.Readable, Path: path, Source: copied, File: true, Optional: slices.Contains(p.made, path)})
	}
}
