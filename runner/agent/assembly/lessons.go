package assembly

import (
	"context"
	"crypto/sha1" // by which git names files
	"fmt"
	"io"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/tools"
	"github.com/agent-ci/agent-ci/tools/memory"
)

// SeenFile returns the git blob ID of a file as the agent sees it, or "" if it is missing. path is relative to the
// repository's root.
type SeenFile func(path string) (id string, err error)

// TakeLesson stores a lesson that the agent proposes, or returns a refusal for the model.
type TakeLesson func(ctx context.Context, p memory.Proposal, seen SeenFile) (taken memory.Lesson, refusal string, err error)

// memoryTools returns the tools for reading and proposing lessons.
func (a *Agent) memoryTools(box *toolbox) []tools.Tool {
	var take memory.Take
	if a.TakeLesson != nil {
		take = func(ctx context.Context, p memory.Proposal) (memory.Lesson, string, error) {
			return a.TakeLesson(ctx, p, box.view.fileID)
		}
	}
	return []tools.Tool{a.Memory.Get(), memory.Propose(take)}
}

// offeredMemory returns the names of the memory tools to offer.
func (a *Agent) offeredMemory() []string {
	var names []string
	if len(a.Memory.Lessons) > 0 {
		names = append(names, memory.GetName)
	}
	if a.TakeLesson != nil {
		names = append(names, memory.ProposeName)
	}
	return names
}

// maxHashedBytes is the maximum size of a file that fileID hashes, in bytes. A larger file gets the ID "large".
const maxHashedBytes = 64 << 20

// fileID returns the git blob ID of a file in the view, "" for a missing file, and "large" for one over maxHashedBytes.
// It implements SeenFile.
func (v *treeView) fileID(path string) (string, error) {
	root, err := v.rootFolder.Root()
	if err != nil {
		return "", err
	}
	f, err := boundedfile.OpenIn(root, path)
	if err != nil {
		return "", nil // a file that cannot be opened counts as missing
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("look at %q: %w", path, err)
	}
	if info.Size() > maxHashedBytes {
		return "large", nil
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if _, err := io.Copy(sum, io.LimitReader(f, maxHashedBytes)); err != nil {
		return "", fmt.Errorf("read %q: %w", path, err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
