package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/publish/bundle"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/outcome"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// artifactServer provides the artifacts of workflow runs.
type artifactServer interface {
	Artifacts(ctx context.Context, repository string, run int64) ([]github.Artifact, error)
	DownloadArtifact(ctx context.Context, repository string, a github.Artifact, to io.Writer, most int64) error
}

// Fetched is a downloaded run.
type Fetched struct {
	Directory string
	Report    string           // path of the report, made on this machine
	View      *transcript.View // folded from the transcript
	Notes     []string         // warnings for a person, a sentence each
}

// Options describes the artifact to fetch.
type Options struct {
	Words   []string // OWNER/REPO and a run of a workflow, or the run's address
	Name    string   // name of the artifact; "" chooses one
	Out     string   // new or empty directory; "" uses one in the user's cache folder
	Environ []string // of agent-ci itself
	Version string
}

// Fetch downloads an artifact and extracts its run into a directory. In the user's cache folder it replaces
// an earlier fetch of the same artifact. A failure leaves nothing.
func Fetch(ctx context.Context, o Options) (*Fetched, error) {
	env := settings.Environment(o.Environ)
	wanted, err := parseRef(env.ForgeServer(), o.Words...)
	if err != nil {
		return nil, err
	}
	wanted.Name = o.Name
	if env.Token() == "" {
		return nil, fmt.Errorf("there is no GitHub token, and GitHub gives artifacts to nobody without one, not even those of public repositories; set GITHUB_TOKEN, for example to what gh auth token prints")
	}
	client, _, err := publish.NewClient(env, o.Version, env.Token())
	if err != nil {
		return nil, err
	}
	cache, cacheErr := record.CachePath(env.Get)
	needsCache := o.Out == ""
	if needsCache && cacheErr != nil {
		return nil, cacheErr
	}
	return fetch(ctx, client, wanted, o.Out, filepath.Join(cache, "fetched"))
}

// fetch downloads the chosen artifact into out, or into a folder of the cache if out is "". A folder in the
// cache gets its final name once it is complete. A failure removes what was extracted.
func fetch(ctx context.Context, from artifactServer, wanted artifactRef, out, cache string) (_ *Fetched, err error) {
	all, err := from.Artifacts(ctx, wanted.Repository, wanted.RunID)
	if err != nil {
		return nil, err
	}
	chosen, err := chooseArtifact(all, wanted)
	if err != nil {
		return nil, err
	}
	tempFolder, finalFolder := out, ""
	if out == "" {
		finalFolder = filepath.Join(cache, fmt.Sprintf("%s-%d-%d", strings.ToLower(strings.ReplaceAll(wanted.Repository, "/", "-")), wanted.RunID, chosen.ID))
		tempFolder = finalFolder + ".new-" + record.NewID(time.Now())
	}
	_, statErr := os.Lstat(tempFolder)
	isNewFolder := statErr != nil
	dir, err := record.NewDirectory(tempFolder, "give another with --out")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	defer func() {
		if err != nil {
			removeExtracted(dir, isNewFolder)
		}
	}()
	fetched, err := fetchInto(ctx, from, wanted, chosen, dir)
	if err != nil {
		return nil, err
	}
	if out != "" {
		return fetched, nil
	}
	return fetched, fetched.moveTo(finalFolder)
}

// removeExtracted removes the extracted files, and with removeFolder the directory. It ignores errors.
func removeExtracted(dir *record.Directory, removeFolder bool) {
	entries, _ := os.ReadDir(dir.Path())
	for _, e := range entries {
		_ = dir.Root().RemoveAll(e.Name())
	}
	if removeFolder {
		_ = os.Remove(dir.Path())
	}
}

// moveTo moves the directory to folder, replacing what is there.
func (f *Fetched) moveTo(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("replace what was fetched before: %w", err)
	}
	if err := os.Rename(f.Directory, folder); err != nil {
		return fmt.Errorf("put the run in its place: %w", err)
	}
	f.Directory, f.Report = folder, filepath.Join(folder, record.ReportFile)
	return nil
}

// artifactPrefix is the prefix of the action's artifact names. The run's id follows it.
const artifactPrefix = "agent-ci"

// chooseArtifact returns the named artifact, or else the only likely one. Of several with one name it takes
// the newest. If several are likely it returns an error that lists them, because only a person can choose.
func chooseArtifact(all []github.Artifact, wanted artifactRef) (github.Artifact, error) {
	if len(all) == 0 {
		return github.Artifact{}, fmt.Errorf("the run has no artifacts: it has not come so far yet, or its workflow uploads none (actions/upload-artifact)")
	}
	var newest []github.Artifact // of each name
	for _, a := range all {
		if wanted.ID != 0 && wanted.ID == a.ID {
			return requireUnexpired(a)
		}
		if !slices.ContainsFunc(newest, func(other github.Artifact) bool { return other.Name == a.Name }) {
			newest = append(newest, a)
		}
	}
	if wanted.ID != 0 {
		return github.Artifact{}, fmt.Errorf("the run has no artifact %d; it has %s", wanted.ID, namesOf(newest))
	}
	if wanted.Name != "" {
		named := filterByName(newest, func(name string) bool { return name == wanted.Name })
		if len(named) == 0 {
			return github.Artifact{}, fmt.Errorf("the run has no artifact %.100q; it has %s", wanted.Name, namesOf(newest))
		}
		return requireUnexpired(named[0])
	}
	likely := likelyArtifacts(newest)
	if len(likely) > 1 {
		return github.Artifact{}, fmt.Errorf("the run has several artifacts; name one with --artifact (the newest first): %s", namesOf(likely))
	}
	return requireUnexpired(likely[0])
}

// likelyArtifacts returns the artifacts named after a run's id, or else those of the action, or else all.
func likelyArtifacts(all []github.Artifact) []github.Artifact {
	for _, isLikely := range []func(name string) bool{
		func(name string) bool { return record.IsID(strings.TrimPrefix(name, artifactPrefix+"-")) },
		func(name string) bool { return strings.HasPrefix(name, artifactPrefix) },
	} {
		if likely := filterByName(all, isLikely); len(likely) > 0 {
			return likely
		}
	}
	return all
}

// filterByName returns the artifacts whose name matches.
func filterByName(all []github.Artifact, matches func(name string) bool) (some []github.Artifact) {
	for _, a := range all {
		if matches(a.Name) {
			some = append(some, a)
		}
	}
	return some
}

// namesOf lists the names of artifacts for a person.
func namesOf(all []github.Artifact) string {
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	return quoteNames(names)
}

// requireUnexpired returns a, or an error if GitHub has deleted its content.
func requireUnexpired(a github.Artifact) (github.Artifact, error) {
	if a.Expired {
		return a, fmt.Errorf("the artifact %.100q is not kept any more: artifacts are for as many days as retention-days of the workflow says", a.Name)
	}
	return a, nil
}

// quoteNames quotes names for a person, up to ten.
func quoteNames(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%.100q", name))
	}
	return clip.Some(quoted, 10)
}

// fetchInto downloads an archive into dir, extracts and verifies the run, and deletes the archive.
func fetchInto(ctx context.Context, from artifactServer, wanted artifactRef, a github.Artifact, dir *record.Directory) (*Fetched, error) {
	const packed = "artifact.zip"
	file, err := dir.Root().OpenFile(packed, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep the artifact: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = dir.Root().Remove(packed)
	}()
	if err := from.DownloadArtifact(ctx, wanted.Repository, a, file, maxArchiveBytes); err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the artifact: %w", err)
	}
	unzipped, err := openArchive(file, info.Size())
	if err != nil {
		return nil, err
	}
	fetched, err := unzipped.extractRun(ctx, dir)
	if err != nil {
		return nil, err
	}
	fetched.noteContradictions(wanted)
	if err := dir.WriteReport(ctx); err != nil {
		return nil, err
	}
	fetched.Directory, fetched.Report = dir.Path(), dir.Join(record.ReportFile)
	return fetched, nil
}

// extractRun extracts and verifies transcript and result, then extracts the files that the transcript has digests
// of.
func (a *archive) extractRun(ctx context.Context, dir *record.Directory) (*Fetched, error) {
	main := []string{record.TranscriptFile}
	if a.fileNamed(record.ResultFile) != nil { // a killed run has none
		main = append(main, record.ResultFile)
	}
	for _, name := range main {
		if _, err := a.extract(ctx, name, bundle.Limit(name), dir); err != nil {
			return nil, err
		}
	}
	f := &Fetched{}
	if err := f.verify(dir); err != nil {
		return nil, err
	}
	taken := map[string]bool{record.TranscriptFile: true, record.ResultFile: true, record.ReportFile: true}
	if end := f.View.Finished; end != nil {
		for _, recorded := range end.Files {
			if taken[recorded.Path] || !hasRecordedDigest(recorded.Path) || a.fileNamed(recorded.Path) == nil {
				continue
			}
			if err := a.extractWithDigest(ctx, recorded, dir); err != nil {
				return nil, err
			}
			taken[recorded.Path] = true
		}
	}
	if names := a.unusedFiles(taken); len(names) > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("Left out (%s), since the transcript does not tell what is in them, or nothing here needs them: %s.", transcript.CountNoun(len(names), "file"), quoteNames(names)))
	}
	return f, nil
}

// extractWithDigest extracts a file and returns an error unless it has the recorded digest.
func (a *archive) extractWithDigest(ctx context.Context, recorded transcript.FileDigest, dir *record.Directory) error {
	extracted, err := a.extract(ctx, recorded.Path, min(bundle.Limit(recorded.Path), recorded.Bytes), dir)
	if err != nil {
		return err
	}
	if extracted != recorded {
		return refusedError("%s was altered: it is not what the transcript tells of", recorded.Path)
	}
	return nil
}

// hasRecordedDigest reports whether name is a file for which runs record a digest.
func hasRecordedDigest(name string) bool {
	folder, file := path.Split(name)
	switch folder {
	case "":
		return slices.Contains([]string{record.PatchFile, record.PackFile, record.WorkPackFile, record.PullRequestFile, "output.json", "skills.json"}, file)
	case record.OutputsFolder + "/", record.PatchesFolder + "/", "extensions/":
		return fs.ValidPath(name)
	}
	return false
}

// verify verifies the transcript's chain, sets View, and compares the result with the transcript. A missing
// result is only noted: the run was killed, or uploaded before its end.
func (f *Fetched) verify(dir *record.Directory) (err error) {
	_, err = dir.CheckChain()
	isTorn := errors.As(err, new(*eventlog.TornError)) && !dir.Has(record.ResultFile)
	switch {
	case isTorn, errors.Is(err, record.ErrUnfinished):
		f.Notes = append(f.Notes, "The run did not come to its end, or was uploaded before: what is missing at the end of its transcript does not show.")
	case err != nil:
		return refusedError("%s", outcome.WithoutFullStop(err))
	}
	if f.View, err = dir.View(); err != nil {
		return refusedError("%s", outcome.WithoutFullStop(err))
	}
	if f.View.Finished == nil || !dir.Has(record.ResultFile) {
		return nil
	}
	if err := dir.CheckResult(f.View); err != nil {
		return refusedError("%s", outcome.WithoutFullStop(err))
	}
	return nil
}

// noteContradictions notes where the transcript contradicts the requested run. Agreement proves nothing,
// because a transcript may claim anything.
func (f *Fetched) noteContradictions(wanted artifactRef) {
	if claimed := f.View.Workspace.Repository; claimed != "" && !strings.EqualFold(claimed, wanted.Repository) {
		f.Notes = append(f.Notes, fmt.Sprintf("Its transcript says that it is of %.100q, and not of %s.", claimed, wanted.Repository))
	}
	if link := f.View.Started.RunPage; link != "" && !strings.Contains(link+"/", fmt.Sprintf("/actions/runs/%d/", wanted.RunID)) {
		f.Notes = append(f.Notes, fmt.Sprintf("Its transcript says that it was made by %.200q, another run than %d.", link, wanted.RunID))
	}
}
