package record

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// maxDigestFiles bounds the known transcripts. The newest are kept.
const maxDigestFiles = 5000

// DigestsPath returns the user's folder with digests of this machine's transcripts, or "" if the
// environment names none. It is outside of run directories, which may be foreign. A GitHub Actions
// job leaves nothing in its home folder, which belongs to the next job or nobody, so XDG_STATE_HOME
// must name the folder there.
func DigestsPath(get func(variable string) string) string {
	state := StatePath(get)
	if get("RUNNER_TEMP") != "" && get("XDG_STATE_HOME") == "" || !filepath.IsAbs(state) {
		return ""
	}
	return filepath.Join(state, "recorded")
}

// digestFile is the file with digests of a transcript's lines, named by the first line's digest. A
// transcript without notes counts as foreign, so failures here end no run.
type digestFile struct {
	folder string
	file   *os.File // nil before the first line
	size   int64    // of the whole digests in it
}

// add records a line before the transcript has it, so every line there is recorded.
func (n *digestFile) add(digest string) {
	if n == nil || n.folder == "" {
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
		_ = n.file.Truncate(n.size) // else the next digest would be on a torn line
		return
	}
	n.size += int64(wrote)
}

// open opens the file of digests named by the first digest. The digests only help to recognise a record, so
// failures leave n without a file.
func (n *digestFile) open(first string, flags int) {
	root, err := openPrivate(n.folder)
	if err != nil {
		return
	}
	defer root.Close()
	if flags&os.O_CREATE != 0 {
		dropOldDigests(root)
	}
	f, err := root.OpenFile(first, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		n.file, n.size = f, info.Size()
		return
	}
	_ = f.Close()
}

func (n *digestFile) sync() {
	if n != nil && n.file != nil {
		_ = n.file.Sync()
	}
}

func (n *digestFile) close() {
	if n != nil && n.file != nil {
		_ = n.file.Close()
	}
}

// dropOldDigests makes room for one more note.
func dropOldDigests(root *os.Root) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	all, err := dir.Readdir(-1)
	if err != nil || len(all) < maxDigestFiles {
		return
	}
	slices.SortFunc(all, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, old := range all[:len(all)-maxDigestFiles+1] {
		_ = root.Remove(old.Name())
	}
}

// reopenDigests returns the notes of this machine's transcript to continue. A foreign transcript gets
// none.
func (d *Directory) reopenDigests(folder string) *digestFile {
	first := d.firstLine()
	if first == "" || !d.RecordedHere(folder) {
		return nil
	}
	n := &digestFile{folder: folder}
	n.open(first, 0)
	return n
}

// RecordedHere says whether this machine wrote the transcript, as far as its lines are whole: the
// chain is, and its end is in the notes.
func (d *Directory) RecordedHere(folder string) bool {
	first := d.firstLine()
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
	root, err := openPrivate(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	noted, err := boundedfile.OpenIn(root, first)
	if err != nil {
		return false
	}
	defer noted.Close()
	for listed := bufio.NewScanner(noted); listed.Scan(); {
		if listed.Text() == head {
			return true
		}
	}
	return false
}

// ForgetRecorded removes the notes of a transcript.
func (d *Directory) ForgetRecorded(folder string) {
	if first := d.firstLine(); folder != "" && first != "" {
		_ = os.Remove(filepath.Join(folder, first))
	}
}

// firstLine returns the digest of the transcript's first line, or "" without a complete one.
func (d *Directory) firstLine() string {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, sum := bufio.NewReaderSize(f, 64<<10), sha256.New()
	for {
		part, err := line.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			sum.Write(part)
		case err != nil:
			return ""
		default:
			sum.Write(part[:len(part)-1])
			return hex.EncodeToString(sum.Sum(nil))
		}
	}
}
