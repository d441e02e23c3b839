package grants

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// UnshowableError reports a file of Folders.Replacements that is missing, and cannot be created for
// commands alone.
type UnshowableError struct{ Path string }

func (e *UnshowableError) Error() string {
	return fmt.Sprintf("%s can't be shown to commands: it is not there, and it would have to be made in a folder that commands change for all to see", e.Path)
}

// prepareReplacements writes the replacement files and resolves the paths where they are shown.
func (p *Plan) prepareReplacements() error {
	copies, err := p.folders.writeCopies("shown", p.folders.Replacements)
	if err != nil {
		return err
	}
	p.replacements = make(map[string]string, len(copies))
	for _, path := range slices.Sorted(maps.Keys(copies)) {
		real := Layers{}.resolveExistingPart(path)
		info, err := os.Stat(real)
		exists := err == nil
		mayCreate := p.home != "" && pathname.IsInAny(real, p.home) // not in the machine's folders
		switch {
		case exists && info.Mode().IsRegular():
			p.replacements[real] = copies[path]
		case exists || !mayCreate: // it cannot be shown
		case pathname.IsInAny(real, p.writable...):
			return &UnshowableError{path}
		default:
			p.replacements[real], p.missingReplacements = copies[path], append(p.missingReplacements, real)
		}
	}
	return nil
}

// mountReplacements mounts the files of Folders.Replacements, even over hidden ones. Missing files are created in
// private changes of home, which requires an overlay.
func (p *Plan) mountReplacements() {
	for path, copied := range p.replacements {
		p.addMount(stage.Mount{Kind: stage.Readable, Path: path, Source: copied, File: true, Optional: slices.Contains(p.missingReplacements, path)})
	}
}
