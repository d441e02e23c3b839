package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/agent-ci/agent-ci/runner/record/boundedfile"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
)

// undigested lists the files without a digest in run.finished. They are written after that event,
// can be regenerated, or are not part of the record.
var undigested = []string{TranscriptFile, ResultFile, ReportFile, PublishFile, StateFolder, CheckoutFolder, LeftoverFolder}

// maxDigests limits the files listed in the last event.
const maxDigests = 100_000

// Digests returns the digests of the run directory's files, except undigested ones. With an error it returns none:
// the last one would be of a part of its file, and files without one would look added.
func (d *Directory) Digests(ctx context.Context) ([]transcript.FileDigest, error) {
	var files []transcript.FileDigest
	err := fs.WalkDir(d.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(undigested, name) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(undigested, name), entry.IsDir():
			return nil
		case len(files) == maxDigests:
			return fmt.Errorf("the run directory has more than %d files", maxDigests)
		case !entry.Type().IsRegular(): // no file of the run; a link or pipe has no digest
			files = append(files, transcript.FileDigest{Path: name})
			return nil
		}
		file, err := d.Digest(ctx, name)
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// Digest returns the size and SHA-256 of a file.
func (d *Directory) Digest(ctx context.Context, name string) (transcript.FileDigest, error) {
	file := transcript.FileDigest{Path: name}
	f, err := d.Open(name)
	if err != nil {
		return file, err
	}
	defer f.Close()
	sum := sha256.New()
	file.Bytes, err = io.Copy(sum, boundedfile.WithContext(ctx, f))
	file.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return file, err
}

// DirectoryVerification is the result of comparing a run directory with its transcript.
type DirectoryVerification struct {
	Head        string   // the head of the chain
	Differences []string // differences from the transcript, a sentence each
	Notes       []string // what could not be checked
}

// VerifyDirectory verifies the hash chain of a run's transcript and compares the other files with their
// recorded digests. If the chain is broken, the error names the place.
func VerifyDirectory(ctx context.Context, runDir string) (*DirectoryVerification, error) {
	dir, err := OpenDirectory(runDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	checked := &DirectoryVerification{}
	if checked.Head, err = dir.CheckChain(); err != nil {
		return nil, err
	}
	view, err := dir.View()
	if err != nil {
		return nil, err
	}
	if view.Finished == nil || view.Finished.Files == nil {
		checked.Notes = append(checked.Notes, "the transcript does not tell the digests of the other files, so that they were not looked at")
		return checked, nil
	}
	if err := dir.CheckResult(view); err != nil {
		checked.Differences = append(checked.Differences, err.Error())
	}
	err = dir.checkFiles(ctx, view, checked)
	return checked, err
}

// ErrUnfinished reports a run without result.json: it was killed. Its chain may be intact, but events
// may be missing at the end.
var ErrUnfinished = errors.New("there is no " + ResultFile + ": the run did not end, and what is missing at the end of its transcript does not show")

// CheckChain verifies the transcript's hash chain and returns its head, which must equal the one in
// result.json. Without that file, it returns the head and ErrUnfinished.
func (d *Directory) CheckChain() (head string, err error) {
	f, err := d.Open(TranscriptFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err = eventlog.VerifyChain(f)
	if err != nil {
		return "", err
	}
	raw, err := d.Read(ResultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return head, ErrUnfinished
	}
	if err != nil {
		return "", err
	}
	var result struct {
		Head string `json:"transcript_sha256"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", fmt.Errorf("read %s: %w", ResultFile, err)
	}
	if result.Head != head {
		return "", fmt.Errorf("%s names another end of the transcript than it has", ResultFile)
	}
	return head, nil
}

// CheckResult returns an error if result.json differs from the result that follows from the events.
func (d *Directory) CheckResult(view *transcript.View) error {
	raw, err := d.Read(ResultFile)
	if err != nil {
		return err
	}
	var stored, derived map[string]any
	if err := json.Unmarshal(raw, &stored); err != nil {
		return fmt.Errorf("%s was altered: %w", ResultFile, err)
	}
	if version, _ := stored["version"].(float64); version != resultVersion {
		return fmt.Errorf("%s can't be compared: it has the format %v of another agent-ci, and this one knows %d", ResultFile, stored["version"], resultVersion)
	}
	fromEvents, err := json.Marshal(ResultFromView(view))
	if err == nil {
		err = json.Unmarshal(fromEvents, &derived)
	}
	if err != nil {
		return fmt.Errorf("read what the transcript tells of %s: %w", ResultFile, err)
	}
	delete(stored, "transcript_sha256") // the last event cannot contain it, and CheckChain compares it
	delete(derived, "transcript_sha256")
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		if !reflect.DeepEqual(stored[key], derived[key]) {
			return fmt.Errorf("%s was altered: %s is not as the transcript tells", ResultFile, key)
		}
	}
	if len(stored) < len(derived) {
		return fmt.Errorf("%s was altered: a field of it is missing", ResultFile)
	}
	return nil
}

// recreatedFiles lists the files that agent-ci publish recreates in the directory of a bundle.
var recreatedFiles = []string{PatchFile, PackFile, WorkPackFile, PullRequestFile}

// checkFiles compares the files with their recorded digests, and adds differences and notes to checked. The record of a
// workflow's run may lack all of these files, because the action uploads report, transcript and result alone: that is
// only a note.
func (d *Directory) checkFiles(ctx context.Context, view *transcript.View, checked *DirectoryVerification) error {
	files, err := d.Digests(ctx)
	if err != nil {
		return fmt.Errorf("read the run directory: %w", err)
	}
	unlisted := map[string]transcript.FileDigest{}
	for _, file := range files {
		unlisted[file.Path] = file
	}
	published := d.Has(PublishFile)
	mayDiffer := func(path string) bool { return published && slices.Contains(recreatedFiles, path) }
	var missing []string
	for _, recorded := range view.Finished.Files {
		current, exists := unlisted[recorded.Path]
		delete(unlisted, recorded.Path)
		if exists && current == recorded {
			continue
		}
		switch {
		case mayDiffer(recorded.Path):
			checked.Notes = append(checked.Notes, recorded.Path+" was made again by agent-ci publish, and the transcript does not tell its digest")
		case !exists:
			missing = append(missing, recorded.Path)
		default:
			checked.Differences = append(checked.Differences, recorded.Path+" was altered")
		}
	}
	allMissing := len(missing) > 0 && len(missing) == len(view.Finished.Files)
	if allMissing && view.Started.RunPage != "" {
		checked.Notes = append(checked.Notes, fmt.Sprintf("%s of the run were not uploaded by its workflow, and cannot be checked here: %s", transcript.CountNoun(len(missing), "other file"), markdown.SomeFiles(missing)))
		missing = nil
	}
	for _, name := range missing {
		checked.Differences = append(checked.Differences, name+" is missing")
	}
	for _, name := range slices.Sorted(maps.Keys(unlisted)) {
		if !mayDiffer(name) {
			checked.Differences = append(checked.Differences, name+" was added")
		}
	}
	return nil
}

// RequireUnaltered returns an error if one of the named files, or a file in a named folder, differs
// from its digest in end. It ignores missing files and files without a digest. A nil end has no digests.
func (d *Directory) RequireUnaltered(ctx context.Context, end *transcript.RunFinished, names ...string) error {
	if end == nil {
		return nil
	}
	for _, recorded := range end.Files {
		if !slices.Contains(names, recorded.Path) && !slices.Contains(names, path.Dir(recorded.Path)) {
			continue
		}
		current, err := d.Digest(ctx, recorded.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if current != recorded {
			return fmt.Errorf("%s was altered: it is not what the transcript tells of", recorded.Path)
		}
	}
	return nil
}
