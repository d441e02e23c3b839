package record

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// keptDigestFiles is the number of transcripts whose digests are kept: the newest. maxDigestFiles is the number of files
// from which on older ones are removed.
const (
	keptDigestFiles = 5000
	maxDigestFiles  = 5500
)

// DigestsPath returns the user's folder with digests of the transcripts that this machine wrote, or
// "". It is outside of run directories, because these may come from elsewhere. In GitHub Actions it
// exists only below XDG_STATE_HOME: a job must leave nothing in the home folder, which the next job
// or nobody gets.
func DigestsPath(getenv func(variable string) string) string {
	state := StatePath(getenv)
	inActionsHome := getenv("RUNNER_TEMP") != "" && getenv("XDG_STATE_HOME") == ""
	if inActionsHome || !filepath.IsAbs(state) {
		return ""
	}
	return filepath.Join(state, "recorded")
}

// digestFile is the file with the digests of a transcript's lines. Its name is the digest of the
// first line. A transcript without such a file counts as foreign, so errors here end no run.
type digestFile struct {
	folder string
	file   *os.File // nil before the first line
	size   int64    // bytes of the complete digests
}

// addLine records the digest of a line. It is called before the line is written, so that no line of the
// transcript lacks a digest. If the file cannot be made, it records nothing from then on.
func (n *digestFile) addLine(digest string) {
	if n.folder == "" {
		return
	}
	if n.file == nil {
		n.open(digest, os.O_CREATE|os.O_EXCL)
	}
	if n.file == nil {
		n.folder = ""
		return
	}
	wrote, err := n.file.WriteString(digest + "\n")
	if err != nil {
		_ = n.file.Truncate(n.size) // otherwise the next digest would follow an incomplete one
		return
	}
	n.size += int64(wrote)
}

// open opens a file to append to it. Its name is the digest of the transcript's first line. flags are further
// flags of os.OpenFile, such as os.O_CREATE for a new file. After an error, n.file stays nil, and the transcript
// counts as foreign.
func (n *digestFile) open(name string, flags int) {
	root, err := openPrivateFolder(n.folder)
	if err != nil {
		return
	}
	defer root.Close()
	if flags&os.O_CREATE != 0 {
		dropOldDigests(root)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		n.file, n.size = f, info.Size()
		return
	}
	_ = f.Close()
}

// dropOldDigests removes the oldest files if there are too many. It removes many at once, because it looks at each file
// to find the oldest.
func dropOldDigests(root *os.Root) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil || len(names) < maxDigestFiles {
		return
	}
	var all []os.FileInfo
	for _, name := range names {
		if info, err := root.Lstat(name); err == nil { // else another run has removed it
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, old := range all[:max(0, len(all)-keptDigestFiles)] {
		_ = root.Remove(old.Name())
	}
}

// reopenDigests opens the digests of this machine's transcript to continue them. Nothing is recorded for a
// foreign transcript.
func (d *Directory) reopenDigests(folder string) (n digestFile) {
	if first := d.firstLineDigest(); first != "" && d.RecordedHere(folder) {
		n.folder = folder
		n.open(first, 0)
	}
	return n
}

// RecordedHere reports whether this machine wrote the complete lines of the transcript. Their chain
// must be intact, and its head must be among the recorded digests.
func (d *Directory) RecordedHere(folder string) bool {
	first := d.firstLineDigest()
	if folder == "" || first == "" {
		return false
	}
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := eventlog.VerifyChain(f)
	if err != nil && !errors.As(err, new(*eventlog.TornError)) {
		return false
	}
	root, err := openPrivateFolder(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	recorded, err := boundedfile.OpenIn(root, first)
	if err != nil {
		return false
	}
	defer recorded.Close()
	for digests := bufio.NewScanner(recorded); digests.Scan(); {
		if digests.Text() == head {
			return true
		}
	}
	return false
}

// ForgetRecorded removes the digests of a transcript.
func (d *Directory) ForgetRecorded(folder string) {
	if first := d.firstLineDigest(); folder != "" && first != "" {
		_ = os.Remove(filepath.Join(folder, first))
	}
}

// firstLineDigest returns the digest of the transcript's first line, or "" if that is missing or
// incomplete.
func (d *Directory) firstLineDigest() string {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	for line, err := range eventlog.Lines(f) {
		if err != nil {
			break
		}
		return line.Digest()
	}
	return ""
}
