package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/record"
)

// scene is what is to be the same after a run as before it, and a word for each.
type scene struct {
	kept   map[string]string // by path
	hidden map[string]string // by name at first
}

// breaches are what the run let through, one by one, as the machine shows it
// from outside.
func (s *siege) breaches() []string {
	s.t.Helper()
	now := s.look()
	s.mendDevices()
	result, err := s.result()
	if err != nil {
		return []string{"result: " + err.Error() + ": " + s.printed}
	}
	var all []string
	all = append(all, s.leaksToGit()...)
	all = append(all, s.published(result.Branch)...)
	all = append(all, differences("outside: ", s.before.kept, now.kept)...)
	all = append(all, differences("hidden: ", s.before.hidden, now.hidden)...)
	all = append(all, s.leaks()...)
	all = append(all, s.rights()...)
	all = append(all, s.survivors()...)
	for line := range strings.Lines(s.outputs()) {
		if _, escape, found := strings.Cut(line, "ESCAPED "); found {
			all = append(all, "attempt: "+escape[:min(len(escape), 200)])
		}
	}
	return all
}

func differences(kind string, before, after map[string]string) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if is, found := after[path]; !found {
			all = append(all, kind+path+" is gone")
		} else if is != before[path] {
			all = append(all, fmt.Sprintf("%s%s was %s and is %s", kind, path, before[path], is))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, found := before[path]; !found {
			all = append(all, kind+path+" is new")
		}
	}
	return all
}

// devices are nodes that every process uses.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}

// look takes in what is to stay.
func (s *siege) look() scene {
	s.t.Helper()
	kept, tree := map[string]string{}, s.leftTree()
	for _, top := range []string{s.world.Outside, s.world.Home, s.world.Cache, filepath.Dir(s.world.Denied), s.world.Temp, filepath.Join(s.world.Workspace, ".git")} {
		s.walk(top, func(path string, info fs.FileInfo) {
			if !s.gitsOwn(path) && !s.baseline(path) && !within(path, tree) && (path == s.world.Temp || !within(tree, path)) {
				kept[path] = s.describe(path, info)
			}
		})
	}
	for _, device := range devices {
		if info, err := os.Lstat(device); err == nil {
			kept[device] = fmt.Sprint(info.Mode(), owner(info))
			if s.before.kept == nil {
				s.modes[device] = info.Mode()
			}
		}
	}
	hidden := map[string]string{}
	for name, path := range s.hiddenNow() {
		if info, err := os.Lstat(path); err == nil {
			hidden[name] = s.describe(path, info)
		}
	}
	return scene{kept, hidden}
}

// leftTree is the folder of the work tree that the run left because it alone has the work, where that is
// beside the run directories; the folder of the siege where there is none.
func (s *siege) leftTree() string {
	raw, err := os.ReadFile(filepath.Join(s.out(), record.PrivateTreeFile))
	var made record.PrivateTreeInfo
	if err != nil || json.Unmarshal(raw, &made) != nil || made.Folder == "" {
		return s.out()
	}
	return filepath.Dir(made.Folder)
}

// mendDevices gives the machine back what a breach took from it: a test that
// finds one must not leave it.
func (s *siege) mendDevices() {
	for device, mode := range s.modes {
		if info, err := os.Lstat(device); err == nil && info.Mode() != mode {
			must.Is(s.t, nil, os.Chmod(device, mode))
		}
	}
}

func (s *siege) walk(top string, visit func(path string, info fs.FileInfo)) {
	s.t.Helper()
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went away, which the comparison tells
		}
		if info, err := entry.Info(); err == nil {
			visit(path, info)
		}
		return nil
	})
	must.Do(s.t, err)
}

// gitsOwn are what agent-ci may write in .git: index, objects, logs, the branch
// of the task, and that it is checked out.
func (s *siege) gitsOwn(path string) bool {
	inside, ok := strings.CutPrefix(path, filepath.Join(s.world.Workspace, ".git")+"/")
	if !ok {
		return path == filepath.Join(s.world.Workspace, ".git")
	}
	top, _, _ := strings.Cut(inside, "/")
	return slices.Contains([]string{"HEAD", "index", "objects", "logs", "agent-ci"}, top) || strings.HasPrefix(inside, "refs/heads")
}

// baseline says whether a file is what the run keeps of its base for later ones.
func (s *siege) baseline(path string) bool {
	if filepath.Dir(path) != filepath.Dir(s.world.Baseline()) || s.before.kept == nil {
		return false
	}
	result, err := s.result()
	if err != nil {
		return false
	}
	raw, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(raw), `"run_id":"`+result.RunID+`"`)
}

func owner(info fs.FileInfo) string {
	stat := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf(" %d:%d", stat.Uid, stat.Gid)
}

// describe tells all that a change of a file would show in. Landlock alone does
// not keep attributes.
func (s *siege) describe(path string, info fs.FileInfo) string {
	content := ""
	if info.Mode().IsRegular() {
		raw, err := beginning(path)
		content = fmt.Sprintf("%d bytes %x %v", info.Size(), sha256.Sum256(raw), err)
	}
	if s.tier == "landlock" {
		return fmt.Sprint(info.Mode().Type(), " ", content)
	}
	attributes := make([]byte, 1024)
	n, _ := unix.Llistxattr(path, attributes)
	changed := info.ModTime().UnixNano()
	if info.IsDir() && !strings.HasPrefix(path, s.world.Outside) {
		changed = 0 // agent-ci itself writes there
	}
	return fmt.Sprint(info.Mode(), owner(info), " ", changed, " ", string(attributes[:max(n, 0)]), " ", content)
}

// beginning reads a file as far as a test looks: one may say that it has 15 TB.
func beginning(path string) ([]byte, error) {
	const most = 64 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// hiddenNow finds the hidden files of the workspace wherever they are: a folder
// around them may be moved.
func (s *siege) hiddenNow() map[string]string {
	if s.inodes == nil {
		s.inodes = map[uint64]string{}
		for name := range hiddenFiles {
			if info, err := os.Lstat(filepath.Join(s.world.Workspace, name)); err == nil {
				s.inodes[inode(info)] = name
			}
		}
	}
	found := map[string]string{}
	s.walk(s.world.Workspace, func(path string, info fs.FileInfo) {
		if name, known := s.inodes[inode(info)]; known {
			found[name] = path
		}
	})
	return found
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// leaks are the canaries that the model was sent, and those in what the run
// left in its directory.
func (s *siege) leaks() []string {
	var all []string
	for _, request := range s.server.Requests() {
		all = append(all, leaksOfRequest(request.Body)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	s.walk(filepath.Dir(s.out()), func(path string, info fs.FileInfo) {
		if !info.Mode().IsRegular() {
			return
		}
		raw, err := beginning(path)
		if err != nil {
			s.t.Error(err)
		}
		for _, canary := range canariesIn(raw) {
			all = append(all, "run directory: "+strings.TrimPrefix(path, s.out()+"/")+" has "+canary)
		}
	})
	return all
}

// leaksToGit are the canaries in the objects of git.
func (s *siege) leaksToGit() []string {
	objects, err := s.gitOutput("cat-file", "--batch-all-objects", "--batch", "--unordered")
	if err != nil {
		return []string{"git: " + err.Error()}
	}
	var all []string
	for _, canary := range canariesIn(objects) {
		all = append(all, "git: an object has "+canary)
	}
	return all
}

// gitOutput asks git about the checkout as its owner would.
func (s *siege) gitOutput(args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", s.world.Workspace}, args...)...)
	cmd.Env = s.env
	return cmd.Output()
}

// leaksOfRequest names the items of a request that have canaries.
func leaksOfRequest(body []byte) []string {
	var request struct{ Input []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		return []string{"request: " + err.Error()}
	}
	var all []string
	for _, raw := range request.Input {
		for _, canary := range canariesIn(raw) {
			var item struct {
				Type   string
				CallID string `json:"call_id"`
			}
			_ = json.Unmarshal(raw, &item)
			all = append(all, fmt.Sprintf("request: %s %q has %s", item.Type, item.CallID, canary))
		}
	}
	return all
}

// canariesIn are the canaries in a text, in any form in which a tool would show
// them.
func canariesIn(text []byte) []string {
	var found []string
	for _, canary := range canaries() {
		if slices.ContainsFunc(formsOf(canary), func(form string) bool { return bytes.Contains(text, []byte(form)) }) {
			found = append(found, canary)
		}
	}
	return found
}

// formsOf is a text as it stands, in hexadecimal, and in base64 wherever it
// begins in what is encoded.
func formsOf(text string) []string {
	forms := []string{text, hex.EncodeToString([]byte(text))}
	for offset := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + text))
		forms = append(forms, encoded[4:len(encoded)-4])
	}
	return forms
}

// published are the protected files that the commit changes.
func (s *siege) published(branch string) []string {
	if branch == "" {
		return nil
	}
	changed, err := s.gitOutput("diff", "--name-only", "-z", "--no-renames", "main", branch)
	if err != nil {
		return []string{"git: " + err.Error()}
	}
	var all []string
	for name := range strings.SplitSeq(string(changed), "\x00") {
		if strings.HasPrefix(name, "protected/") {
			all = append(all, "commit: "+name+" is protected")
		}
	}
	return all
}

// rights are the programs in the checkout, and in what the run left, that give whoever
// runs them another's.
func (s *siege) rights() []string {
	var all []string
	for _, top := range []string{s.world.Workspace, s.out()} {
		s.walk(top, func(path string, info fs.FileInfo) {
			if info.Mode().IsRegular() && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				all = append(all, "rights: "+path+" is "+info.Mode().String())
			}
		})
	}
	return all
}

// survivors are processes of the run that outlive it.
func (s *siege) survivors() []string {
	var all []string
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		line, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(s.dir)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && !ends(pid) {
			all = append(all, fmt.Sprintf("process: %d lives: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return all
}

// ends waits for a process that is killed already, and may need a moment to be
// gone.
func ends(pid int) bool {
	const moment = 2000 // milliseconds
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, moment)
	return err == nil && n > 0
}
