package artifact

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/recordtest"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/eventlog"
)

// evilPage is what no page that is shown may have.
const evilPage = "<script>evil()</script>"

// honest are the files of a run that has ended, as a workflow uploads them.
func honest(t *testing.T) map[string]string {
	t.Helper()
	rec := recordtest.New(t, "20260301T090000Z-0a1b2c3d")
	must.Do(t, rec.Begin(transcript.RunStarted{RunID: rec.ID, Job: []byte(`{}`), RunPage: "https://github.com/octo/widgets/actions/runs/7"}))
	must.Do(t, rec.Append(transcript.Workspace{Repository: "octo/widgets", BaseSHA: strings.Repeat("a", 40), Path: "."}))
	must.Do(t, rec.Write(record.PatchFile, []byte("--- a\n")))
	must.Do(t, must.Err(rec.MakeFolder(record.OutputsFolder)))
	must.Do(t, rec.Write("outputs/1.txt", []byte("out")))
	must.Do(t, must.Err(rec.MakeFolder("extensions")))
	must.Do(t, rec.Write("extensions/docs.json", []byte("[]")))
	must.Do(t, rec.Write("skills.json", []byte("{}")))
	must.Do(t, rec.Write(record.ReportFile, []byte(evilPage)))
	files := must.Get(rec.Digests(t.Context()))(t)
	must.Do(t, rec.Append(transcript.RunFinished{Outcome: "changed", Reason: "pull_request", Message: "Done.", Files: files}))
	view := must.Get(rec.FoldEvents(nil))(t)
	result := record.ResultFromView(view)
	result.TranscriptSHA256 = rec.Log().Head()
	must.Do(t, rec.WriteJSON(record.ResultFile, result))
	rec.Remove(record.StateFolder)
	all := map[string]string{}
	must.Do(t, fs.WalkDir(rec.Root().FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			raw, readErr := rec.Read(name)
			all[name], err = string(raw), readErr
		}
		return err
	}))
	return all
}

// pack makes an archive of files, and of what add puts behind them.
func pack(t testing.TB, files map[string]string, add func(*zip.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entry(t, w, &zip.FileHeader{Name: name, Method: zip.Deflate}, files[name])
	}
	if add != nil {
		add(w)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

func entry(t testing.TB, w *zip.Writer, h *zip.FileHeader, content string) {
	t.Helper()
	must.Get(must.Get(w.CreateHeader(h))(t).Write([]byte(content)))(t)
}

// hub is a forge with a repository whose run 7 has artifacts.
type hub struct {
	*forgetest.Forge
	repo   *forgetest.Repository
	client *github.Client
	out    string
}

func newHub(t *testing.T, archive []byte) hub {
	t.Helper()
	f := forgetest.New(t, forgetest.Options{})
	client := must.Get(github.New(github.Options{APIURL: f.APIURL, Token: f.Token}))(t)
	h := hub{f, f.AddRepository("octo", "widgets"), client, filepath.Join(t.TempDir(), "out")}
	if archive != nil {
		h.repo.AddArtifact(7, forgetest.Artifact{Name: "agent-ci-run", Zip: archive})
	}
	return h
}

func (h hub) fetch(t *testing.T) (*Fetched, error) {
	t.Helper()
	return fetch(t.Context(), h.client, artifactRef{Repository: "octo/widgets", RunID: 7}, h.out, "")
}

// filesIn are the files below a folder.
func filesIn(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	must.Do(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(name))
		}
		return err
	}))
	return all
}

func TestFetchesRun(t *testing.T) {
	h := newHub(t, pack(t, honest(t), nil))
	got := must.Get(h.fetch(t))(t)
	want := []string{"changes.patch", "extensions/docs.json", "outputs/1.txt", "report.html", "result.json", "skills.json", "transcript.jsonl"}
	must.Same(t, want, filesIn(t, h.out))
	page := must.Get(os.ReadFile(got.Report))(t)
	if strings.Contains(string(page), evilPage) || !strings.Contains(string(page), "20260301T090000Z-0a1b2c3d") {
		t.Errorf("the page is not the one of this program: %.300s", page)
	}
	if got.Report != filepath.Join(h.out, "report.html") || len(got.View.Head) != 64 || len(got.Notes) > 0 || got.View.Finished.Outcome != "changed" {
		t.Errorf("%+v", got)
	}
	must.None(t, must.Get(record.VerifyDirectory(t.Context(), h.out))(t).Differences)
}

// Only files that a run has are taken. What is left out is named; of a whole folder there may be many.
func TestTakesOnlyRecordedFiles(t *testing.T) {
	whole := []string{"changes.patch", "extensions/docs.json", "outputs/1.txt", "report.html", "result.json", "skills.json", "transcript.jsonl"}
	const leftOut = "since the transcript does not tell what is in them, or nothing here needs them: "
	for name, test := range map[string]struct {
		change func(files map[string]string) map[string]string
		want   []string
		note   string // empty for none
	}{
		"what examples upload by default": {func(files map[string]string) map[string]string {
			maps.DeleteFunc(files, func(name, _ string) bool {
				return !slices.Contains([]string{"report.html", "result.json", "transcript.jsonl"}, name)
			})
			return files
		}, []string{"report.html", "result.json", "transcript.jsonl"}, ""},
		"other files": {func(files map[string]string) map[string]string {
			maps.Copy(files, map[string]string{
				"index.html": evilPage, "outputs/more.html": evilPage, "outputs/deep/1.txt": "x", "state/alive": "x", "checkout/.git/config": "x",
				"publish.json": "{}", "changes.pack": "PACK",
			})
			return files
		}, whole, "Left out (7 files), " + leftOut + `"changes.pack", "checkout/.git/config", "index.html", "outputs/deep/1.txt", "outputs/more.html", "publish.json", "state/alive".`},
		"many, and some beside the run": {func(files map[string]string) map[string]string {
			all := map[string]string{"aside.txt": "x", "changes.patch": "x", "run/publish.json": "{}", "run/`@octocat`.html": "x"}
			for name, content := range files {
				all["run/"+name] = content
			}
			for i := range 20 {
				all[fmt.Sprintf("run/work/%02d", i)] = "x"
			}
			return all
		}, whole, "Left out (24 files), " + leftOut + `"aside.txt", "changes.patch", "run/` + "`@octocat`" + `.html", "run/publish.json", "run/work/00", "run/work/01", "run/work/02", "run/work/03", "run/work/04", "run/work/05" and 14 more.`},
	} {
		got := must.Get(newHub(t, pack(t, test.change(honest(t)), nil)).fetch(t))(t)
		must.Same(t, test.want, filesIn(t, got.Directory), name)
		must.Same(t, test.note, strings.Join(got.Notes, "|"), name)
		checked, err := record.VerifyDirectory(t.Context(), got.Directory)
		if missing := len(checked.Notes) == 1; err != nil || len(checked.Differences) > 0 || missing != (len(test.want) < len(whole)) {
			t.Errorf("%s: %+v, %v", name, checked, err)
		}
	}
}

func TestFetchesRunFromSubfolder(t *testing.T) {
	files := map[string]string{}
	for name, content := range honest(t) {
		files["temp/run/"+name] = content
	}
	files["temp/run/checkout/transcript.jsonl"] = "of the repository"
	h := newHub(t, pack(t, files, func(w *zip.Writer) { entry(t, w, &zip.FileHeader{Name: "temp/"}, "") }))
	must.Get(h.fetch(t))(t)
	must.Get(os.Stat(filepath.Join(h.out, "outputs/1.txt")))(t)
}

// A run that was killed has no end that could be compared, and nothing that tells of
// its other files.
func TestFetchesKilledRun(t *testing.T) {
	files := honest(t)
	lines := strings.SplitAfter(files["transcript.jsonl"], "\n")
	for name, transcript := range map[string]string{"between two events": strings.Join(lines[:2], ""), "within one": strings.Join(lines[:2], "") + lines[2][:10]} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, pack(t, map[string]string{"transcript.jsonl": transcript, "changes.patch": "x", "outputs/1.txt": "x"}, nil))
			got := must.Get(h.fetch(t))(t)
			must.Same(t, []string{"report.html", "transcript.jsonl"}, filesIn(t, h.out))
			if len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "did not come to its end") || !strings.Contains(got.Notes[1], `"changes.patch", "outputs/1.txt"`) {
				t.Errorf("%q", got.Notes)
			}
		})
	}
}

// Whoever could write to the artifact may have put anything there. None of these
// leaves a file, here or elsewhere.
func TestRefusesHostileArtifacts(t *testing.T) {
	files := honest(t)
	with := func(name, content string) func(*testing.T) []byte {
		return func(t *testing.T) []byte {
			changed := maps.Clone(files)
			changed[name] = content
			return pack(t, changed, nil)
		}
	}
	behind := func(add func(*testing.T, *zip.Writer)) func(*testing.T) []byte {
		return func(t *testing.T) []byte { return pack(t, files, func(w *zip.Writer) { add(t, w) }) }
	}
	named := func(name string) func(*testing.T) []byte {
		return behind(func(t *testing.T, w *zip.Writer) {
			entry(t, w, &zip.FileHeader{Name: name}, strings.Repeat("x", 1-strings.Count(name+"|", "/|")))
		})
	}
	mode := func(m fs.FileMode) func(*testing.T) []byte {
		return behind(func(t *testing.T, w *zip.Writer) {
			h := &zip.FileHeader{Name: "outputs/link"}
			h.SetMode(m)
			entry(t, w, h, "/etc/passwd")
		})
	}
	for name, c := range map[string]struct {
		archive func(*testing.T) []byte
		words   string
	}{
		"no archive":    {func(*testing.T) []byte { return []byte("<html>" + evilPage) }, "no whole zip archive"},
		"half of one":   {func(t *testing.T) []byte { whole := pack(t, files, nil); return whole[:len(whole)/2] }, "no whole zip archive"},
		"nothing":       {func(t *testing.T) []byte { return pack(t, nil, nil) }, "no transcript.jsonl"},
		"no transcript": {func(t *testing.T) []byte { return pack(t, map[string]string{"report.html": evilPage}, nil) }, "no transcript.jsonl"},
		"two runs": {func(t *testing.T) []byte {
			return pack(t, map[string]string{"a/transcript.jsonl": "", "b/transcript.jsonl": ""}, nil)
		}, "several runs"},
		"a way up":                {named("../escaped"), "leads elsewhere"},
		"a way up within":         {named("outputs/../../escaped"), "leads elsewhere"},
		"a name from the root":    {named("/tmp/escaped"), "leads elsewhere"},
		"no name":                 {named(""), "leads elsewhere"},
		"this folder":             {named("./"), "leads elsewhere"},
		"a name of Windows":       {named(`..\escaped`), "characters that names"},
		"control characters":      {named("outputs/\x1b]0;evil\a"), "characters that names"},
		"a line in a name":        {named("outputs/a\nb"), "characters that names"},
		"letters that turn":       {named("outputs/\u202etxt.exe"), "characters that names"},
		"no UTF-8":                {named("outputs/\xff\xfe"), "characters that names"},
		"a name without end":      {named(strings.Repeat("a/", 600) + "a"), "more than 1024"},
		"a symbolic link":         {mode(fs.ModeSymlink | 0o777), "no plain file"},
		"a pipe":                  {mode(fs.ModeNamedPipe | 0o600), "no plain file"},
		"a device":                {mode(fs.ModeDevice | 0o600), "no plain file"},
		"a name twice":            {named("outputs/1.txt"), "twice"},
		"the transcript twice":    {named("transcript.jsonl"), "twice"},
		"a file that is a folder": {named("outputs/1.txt/"), "twice"},
		"too many files": {behind(func(t *testing.T, w *zip.Writer) {
			for i := range maxEntries {
				entry(t, w, &zip.FileHeader{Name: fmt.Sprintf("f%d", i)}, "")
			}
		}), "more than 20000"},
		"a list of files without end": {behind(func(t *testing.T, w *zip.Writer) {
			for i := range 2 * maxListingBytes / (60 << 10) {
				entry(t, w, &zip.FileHeader{Name: fmt.Sprintf("%d%s", i, strings.Repeat("a", 60<<10))}, "")
			}
		}), "the list of its files has more than"},
		"a way to pack that nobody knows": {behind(func(t *testing.T, w *zip.Writer) {
			must.Get(w.CreateRaw(&zip.FileHeader{Name: "a", Method: 99}))(t)
		}), "unknown way"},
		"a password": {behind(func(t *testing.T, w *zip.Writer) {
			must.Get(w.CreateRaw(&zip.FileHeader{Name: "a", Flags: 1}))(t)
		}), "encrypted"},
		"a bomb":                  {bomb(files, 64<<20, 64<<20), "result.json in it has 67108864 bytes, more than 16777216"},
		"a bomb that tells less":  {bomb(files, 64<<20, 10), "result.json in it"},
		"less than the size":      {bomb(files, 10, 1000), "result.json in it"},
		"an event altered":        {with("transcript.jsonl", strings.Replace(files["transcript.jsonl"], "octo/widgets", "octo/gadgets", 1)), "is not as it was written"},
		"another chain":           {with("transcript.jsonl", reforged(t, files["transcript.jsonl"])), "names another end"},
		"no events":               {with("transcript.jsonl", ""), "names another end"},
		"another end":             {with("transcript.jsonl", files["transcript.jsonl"]+"{"), "torn"},
		"a line without end":      {with("transcript.jsonl", strings.Repeat(" ", eventlog.MaxLine+2)), "longer than a line"},
		"a page for a transcript": {with("transcript.jsonl", evilPage+"\n"), "is not"},
		"another result":          {with("result.json", strings.Replace(files["result.json"], `"Done."`, `"Well done."`, 1)), "was altered"},
		"a result that is none":   {with("result.json", evilPage), "result.json"},
		"another patch":           {with("changes.patch", "+++ b\n"), "changes.patch was altered"},
		"a longer patch":          {with("changes.patch", "--- a\n+++ b\n"), "changes.patch in it has"},
		"another output":          {with("outputs/1.txt", "OUT"), "outputs/1.txt was altered"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, c.archive(t))
			got, err := h.fetch(t)
			if err == nil || !strings.HasPrefix(err.Error(), "the artifact is not used: ") || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%+v, %v; want %q", got, err, c.words)
			}
			must.Same(t, false, strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == '\u202e' }), "the error can steer a terminal", err)
			must.None(t, filesIn(t, filepath.Dir(h.out)), "there")
		})
	}
}

// bomb has a result of so many bytes, of which the archive tells another number.
func bomb(files map[string]string, size, told int) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		changed := maps.Clone(files)
		changed["result.json"] = strings.Repeat(" ", size)
		raw := pack(t, changed, nil)
		is := binary.LittleEndian.AppendUint32(nil, uint32(size))
		listed := bytes.LastIndex(raw, []byte("result.json")) // in the list of files, whose record has the size 22 bytes before the name
		if !bytes.Equal(raw[listed-22:listed-18], is) {
			t.Fatal("the archive has another form")
		}
		copy(raw[listed-22:], binary.LittleEndian.AppendUint32(nil, uint32(told)))
		return raw
	}
}

// reforged is a chain that fits, made of other events.
func reforged(t *testing.T, transcriptFile string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t")
	log := must.Get(eventlog.Create(path, eventlog.Options{}))(t)
	for event, err := range eventlog.Read(strings.NewReader(transcriptFile)) {
		must.Do(t, err)
		must.Get(log.Append(event.Type, event.Data))(t)
	}
	must.Do(t, log.Close())
	raw := must.Get(os.ReadFile(path))(t)
	return string(raw)
}

// Making the page of a long transcript ends with the context.
func TestReportEndsWithContext(t *testing.T) {
	h := newHub(t, pack(t, honest(t), nil))
	must.Get(h.fetch(t))(t)
	dir := must.Get(record.OpenDirectory(h.out))(t)
	defer dir.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	must.Is(t, context.Canceled, dir.WriteReport(over))
}

// A size that a transcript tells may be any number.
func TestRefusesWrongRecordedSizes(t *testing.T) {
	for _, told := range []int64{-1, -1 << 62, 2} {
		raw := pack(t, map[string]string{"transcript.jsonl": "", "changes.patch": "---"}, nil)
		a := must.Get(openArchive(bytes.NewReader(raw), int64(len(raw))))(t)
		dir := must.Get(record.NewDirectory(t.TempDir(), ""))(t)
		defer dir.Close()
		if err := a.extractWithDigest(t.Context(), transcript.FileDigest{Path: "changes.patch", Bytes: told}, dir); err == nil || !strings.Contains(err.Error(), "more than") || dir.Has("changes.patch") {
			t.Errorf("%d: %v", told, err)
		}
	}
}

// A transcript that fits can tell of any file. Only those of a run are taken.
func TestForgedChainNamesNoOtherFile(t *testing.T) {
	for _, name := range []string{"report.html", "../escaped", "/etc/passwd", "index.html", "state/x", "outputs/../index.html", "outputs/a/b", "leftover/.git/hooks/x"} {
		if name != "report.html" && hasRecordedDigest(name) {
			t.Errorf("%s would be kept", name)
		}
	}
}

func TestNotesRunOfOtherRepository(t *testing.T) {
	h := newHub(t, nil)
	other := h.AddRepository("octo", "gadgets")
	other.AddArtifact(8, forgetest.Artifact{Name: "agent-ci-run", Zip: pack(t, honest(t), nil)})
	got := must.Get(fetch(t.Context(), h.client, artifactRef{Repository: "octo/gadgets", RunID: 8}, h.out, ""))(t)
	if len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "octo/widgets") || !strings.Contains(got.Notes[1], "another run than 8") {
		t.Errorf("%q", got.Notes)
	}
}

// A second fetch takes the place of the first, and one that fails leaves it.
func TestSecondFetchReplacesFirst(t *testing.T) {
	h := newHub(t, pack(t, honest(t), nil))
	cache := t.TempDir()
	w := artifactRef{Repository: "Octo/Widgets", RunID: 7}
	first := must.Get(fetch(t.Context(), h.client, w, "", cache))(t)
	must.Do(t, os.WriteFile(filepath.Join(first.Directory, "more"), nil, 0o600))
	second := must.Get(fetch(t.Context(), h.client, w, "", cache))(t)
	must.Same(t, first.Directory, second.Directory)
	must.Same(t, filepath.Join(first.Directory, "report.html"), second.Report)
	h.On(http.MethodGet, "/repos/Octo/Widgets/actions/artifacts/*/zip", forgetest.Reply{Status: 404}, 1)
	must.Fail(t, "", must.Err(fetch(t.Context(), h.client, w, "", cache)), "a download that failed is no error")
	if left := filesIn(t, cache); len(left) != 7 || !strings.HasPrefix(left[0], "octo-widgets-7-") {
		t.Errorf("there is %q", left)
	}
}

func TestFailedFetchKeepsDirectory(t *testing.T) {
	h := newHub(t, pack(t, honest(t), nil))
	must.Do(t, os.Mkdir(h.out, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(h.out, "mine"), nil, 0o600))
	if _, err := h.fetch(t); err == nil || !slices.Equal(filesIn(t, h.out), []string{"mine"}) {
		t.Errorf("%v, %q", err, filesIn(t, h.out))
	}
	must.Do(t, os.Remove(filepath.Join(h.out, "mine")))
	h.On(http.MethodGet, "/repos/octo/widgets/actions/artifacts/*/zip", forgetest.Reply{Status: 404}, 1)
	must.Fail(t, "", must.Err(h.fetch(t)), "a download that failed is no error")
	must.Do(t, must.Err(os.Stat(h.out)), "an empty directory of the user's is gone")
}

func TestChoosesArtifact(t *testing.T) {
	all := []github.Artifact{{ID: 6, Name: "logs"}, {ID: 5, Name: "agent-ci-b"}, {ID: 4, Name: "agent-ci-a"}, {ID: 3, Name: "agent-ci-a"}, {ID: 2, Name: "old", Expired: true}}
	one, other := github.Artifact{ID: 8, Name: "agent-ci-20260301T090000Z-0a1b2c3d"}, github.Artifact{ID: 9, Name: "agent-ci-20260301T080000Z-0a1b2c3d"}
	for name, c := range map[string]struct {
		all  []github.Artifact
		w    artifactRef
		want int64
		err  string
	}{
		"the only one":            {all: all[:1], want: 6},
		"the one of ours":         {all: all[:2], want: 5},
		"the newest of a name":    {all: all[2:4], want: 4},
		"what the action uploads": {all: append(all[:4:4], one), want: 8},
		"two runs":                {all: append(all[:4:4], one, other), err: `the newest first): "agent-ci-20260301T090000Z-0a1b2c3d", "agent-ci-20260301T080000Z-0a1b2c3d"`},
		"by name":                 {all: all, w: artifactRef{Name: "agent-ci-a"}, want: 4},
		"by id":                   {all: all, w: artifactRef{ID: 3}, want: 3},
		"several":                 {all: all, err: `"agent-ci-b", "agent-ci-a"`},
		"several of others":       {all: []github.Artifact{all[0], all[4]}, err: `"logs", "old"`},
		"none":                    {err: "no artifacts"},
		"no such id":              {all: all, w: artifactRef{ID: 9}, err: "no artifact 9"},
		"no such name":            {all: all, w: artifactRef{Name: "x"}, err: `no artifact "x"`},
		"one that is not kept":    {all: all[4:], err: "not kept any more"},
		"an id that is not kept":  {all: all, w: artifactRef{ID: 2}, err: "not kept any more"},
		"a name that is not kept": {all: all, w: artifactRef{Name: "old"}, err: "not kept any more"},
	} {
		got, err := chooseArtifact(c.all, c.w)
		if c.err == "" && (err != nil || got.ID != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %d, %v", name, got.ID, err)
		}
	}
}

func TestSendsNoTokenToStore(t *testing.T) {
	h := newHub(t, nil)
	raw := pack(t, honest(t), nil)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must.Same(t, "", r.Header.Get("Authorization"), "the store got the token")
		_, _ = w.Write(raw)
	}))
	defer store.Close()
	h.repo.AddArtifact(7, forgetest.Artifact{Name: "agent-ci-run", Zip: raw, At: store.URL + "/?sig=secret"})
	must.Get(h.fetch(t))(t)
}

// Whatever an archive is, it is refused, or all that is taken out of it lies below the
// directory and within the limits.
func FuzzArchive(f *testing.F) {
	f.Add(pack(f, map[string]string{"transcript.jsonl": "{}\n", "result.json": "{}"}, nil))
	f.Add(pack(f, map[string]string{"a/transcript.jsonl": "x"}, func(w *zip.Writer) { entry(f, w, &zip.FileHeader{Name: "../b"}, "x") }))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := openArchive(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		dir := must.Get(record.NewDirectory(filepath.Join(t.TempDir(), "out"), ""))(t)
		defer dir.Close()
		for _, name := range a.unusedFiles(nil) {
			if !fs.ValidPath(name) {
				t.Fatalf("%q is taken for a name", name)
			}
		}
		put, err := a.extract(t.Context(), record.TranscriptFile, 1<<10, dir)
		if err == nil && put.Bytes > 1<<10 {
			t.Errorf("%d bytes came out", put.Bytes)
		}
		if left := filesIn(t, filepath.Dir(dir.Path())); len(left) > 1 || len(left) == 1 && left[0] != "out/transcript.jsonl" {
			t.Errorf("there is %q", left)
		}
	})
}
