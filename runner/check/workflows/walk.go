package workflows

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"
	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// Bounds on the workflows and files read.
const (
	folder       = ".github/workflows"
	maxWorkflows = 200
	maxNodes     = 50_000 // nodes of a YAML file, with aliases expanded
	maxFiles     = 20     // listed files of a job
	maxNested    = 10     // depth of workflows and actions that use each other
)

// Change is a pushed change.
type Change struct {
	Base, Pushed Tree     // the files without the change and with it
	Paths        []string // the changed paths
	Branch       string   // the pushed branch
	BaseBranch   string   // the base of the pull request
}

// Find returns the jobs that the pushed branch starts and that run code of the change with rights. Such a job
// has secrets or write permissions. It runs a changed file, or a file that only the change makes it run.
//
// For a pushed workflow that cannot be read, all has an entry without a job, whose Unknown says why. The error
// is a failed read of a tree.
func Find(c Change) (all []transcript.WorkflowStart, err error) {
	names, err := workflowNames(c)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found, err := c.examineWorkflow(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// workflowNames returns the sorted paths of the workflows in both trees.
func workflowNames(c Change) (names []string, err error) {
	for _, tree := range []Tree{c.Base, c.Pushed} {
		files, err := tree.List(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if ext := path.Ext(file); ext == ".yml" || ext == ".yaml" {
				names = append(names, path.Join(folder, file))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxWorkflows)], nil
}

// workflow is a workflow as actionlint reads it, and its YAML.
type workflow struct {
	*actionlint.Workflow
	root *yaml.Node
}

// parseWorkflow reads a workflow. problem says why it cannot be read, or is empty.
func parseWorkflow(content []byte) (w workflow, problem string) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return w, "it is no YAML"
	}
	if left := maxNodes; !isWithinLimits(&document, &left, 0) {
		return w, "it is too large"
	}
	w.Workflow, _ = actionlint.Parse(content) // errors in some parts leave the others readable
	if w.Workflow == nil || len(w.Jobs) == 0 {
		return w, "it has no jobs that can be read"
	}
	w.root = document.Content[0]
	return w, ""
}

// isWithinLimits reports whether YAML, with aliases expanded, has up to *left nodes and is not too
// deep. It subtracts the nodes from *left.
func isWithinLimits(n *yaml.Node, left *int, depth int) bool {
	const deepest = 200
	if *left--; *left < 0 || depth > deepest {
		return false
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias == nil || isWithinLimits(n.Alias, left, depth+1)
	}
	return !slices.ContainsFunc(n.Content, func(below *yaml.Node) bool { return !isWithinLimits(below, left, depth+1) })
}

// examineWorkflow examines both versions of the workflow called name: the pushed branch's, and the base's,
// which some events run instead. A version may be missing.
func (c Change) examineWorkflow(name string) (all []transcript.WorkflowStart, err error) {
	_, before, err := readFollowingLinks(c.Base, name)
	if err != nil {
		return nil, err
	}
	_, now, err := readFollowingLinks(c.Pushed, name)
	if err != nil {
		return nil, err
	}
	changed := !bytes.Equal(before, now)
	found, err := c.examineVersion(name, now, changed, ofBranch)
	if err != nil || before == nil {
		return found, err
	}
	more, err := c.examineVersion(name, before, false, ofBase)
	return append(found, more...), err
}

// origin says whose version of a workflow runs for an event.
type origin int

const (
	ofBranch origin = iota // the pushed branch's
	ofBase                 // the default branch's
)

// examineVersion examines one version of a workflow. changed means that the push changed it.
func (c Change) examineVersion(name string, content []byte, changed bool, from origin) ([]transcript.WorkflowStart, error) {
	if content == nil {
		return nil, nil
	}
	w, problem := parseWorkflow(content)
	if problem != "" {
		if from == ofBase { // the branch's version reports it
			return nil, nil
		}
		return []transcript.WorkflowStart{{Workflow: name, Unknown: problem}}, nil
	}
	events := c.triggeredEvents(w, from)
	if len(events) == 0 {
		return nil, nil
	}
	runs := trigger{branch: c.Branch, events: events}
	if from == ofBase {
		runs.branch = "" // the branch depends on the event: the default branch, or a pull request's target
	}
	var all []transcript.WorkflowStart
	for _, id := range slices.Sorted(maps.Keys(w.Jobs)) {
		job := w.Jobs[id]
		if runs.excludes(job.If) || from == ofBase && !w.checksOutHead(id) {
			continue
		}
		start := transcript.WorkflowStart{Workflow: name, Job: id, Events: events}
		rights := w.rightsOf(id)
		var err error
		if start.Files, err = c.startedFiles(w, job, name, changed, rights); err != nil {
			return nil, err
		}
		start.Secrets, start.Writes, start.DefaultRights = slices.Sorted(maps.Keys(rights.secrets)), slices.Sorted(maps.Keys(rights.writes)), rights.defaultPermissions
		if len(start.Files) > 0 && (len(start.Secrets)+len(start.Writes) > 0 || start.DefaultRights) {
			all = append(all, start)
		}
	}
	return all, nil
}

// startedFiles returns the files that a job runs because of the change: first changed files, then files that
// only the pushed version runs. After maxFiles files, one entry counts the others. workflowChanged is true if
// the job's workflow is itself a changed file. startedFiles adds the rights of called workflows to r.
func (c Change) startedFiles(w workflow, job *actionlint.Job, workflowName string, workflowChanged bool, r *rights) ([]transcript.StartedFile, error) {
	now, before := newWalk(c.Pushed, c.Paths), newWalk(c.Base, nil)
	now.followJob(w, job, r, 0)
	before.followJob(w, job, newRights(), 0)
	if err := cmp.Or(now.err, before.err); err != nil {
		return nil, err
	}
	var touched, newlyRun []transcript.StartedFile // changed files, and unchanged ones that only the change runs
	listed := map[string]bool{}
	if workflowChanged {
		touched = append(touched, transcript.StartedFile{Path: workflowName, Via: "the workflow itself"})
		listed[workflowName] = true
	}
	for _, reached := range now.order {
		file, _, _ := strings.Cut(reached, partSeparator)
		isOldRun := !now.touched[reached] && before.isReached(reached)
		if listed[file] || isOldRun {
			continue
		}
		listed[file] = true
		if now.touched[file] {
			touched = append(touched, transcript.StartedFile{Path: file, Via: now.via[reached]})
		} else {
			newlyRun = append(newlyRun, transcript.StartedFile{Path: file, Via: now.via[reached] + " (which the change now starts)"})
		}
	}
	files := append(touched, newlyRun...)
	if more := len(files) - maxFiles; more > 0 {
		files = append(files[:maxFiles], transcript.StartedFile{Path: fmt.Sprintf("%d more", more)})
	}
	return files, nil
}

// followJob follows the steps of a job. It adds the rights of called workflows to r.
func (k *walk) followJob(w workflow, job *actionlint.Job, r *rights, depth int) {
	if depth > maxNested {
		return
	}
	if call := job.WorkflowCall; call != nil && call.Uses != nil {
		k.followReusable(call, r, depth)
		return
	}
	dir := "."
	for _, d := range []*actionlint.Defaults{w.Defaults, job.Defaults} {
		if d != nil && d.Run != nil && d.Run.WorkingDirectory != nil {
			dir = folderOf(d.Run.WorkingDirectory.Value)
		}
	}
	for _, step := range job.Steps {
		k.followStep(step, dir, depth)
	}
}

// followStep follows a step: a script or an action.
func (k *walk) followStep(step *actionlint.Step, dir string, depth int) {
	switch exec := step.Exec.(type) {
	case *actionlint.ExecRun:
		if exec.WorkingDirectory != nil {
			dir = folderOf(exec.WorkingDirectory.Value)
		}
		if exec.Run != nil {
			k.followScript(exec.Run.Value, caller{dirs: []string{dir}, via: "run"})
		}
	case *actionlint.ExecAction:
		if exec.Uses != nil {
			k.followAction(exec.Uses.Value, "uses", depth)
		}
	}
}

// followReusable follows a workflow of the repository that a job calls. It adds the rights that the
// called jobs get to r.
func (k *walk) followReusable(call *actionlint.WorkflowCall, r *rights, depth int) {
	local, found := strings.CutPrefix(call.Uses.Value, "./")
	if !found {
		return
	}
	name, content := k.read(local)
	if content == nil {
		return
	}
	k.addReached(name, "uses: "+call.Uses.Value)
	w, problem := parseWorkflow(content)
	if problem != "" {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(w.Jobs)) {
		own := w.rightsOf(id)
		if call.InheritSecrets {
			maps.Copy(r.secrets, own.secrets)
		}
		maps.Copy(r.writes, own.writes) // GitHub gives no more rights than the caller has; listing more does no harm
		k.followJob(w, w.Jobs[id], r, depth+1)
	}
}

// actionFile has the fields of an action.yml that matter here.
type actionFile struct {
	Runs struct {
		Main  string `yaml:"main"`
		Pre   string `yaml:"pre"`
		Post  string `yaml:"post"`
		Image string `yaml:"image"`
		Steps []struct {
			Run  string `yaml:"run"`
			Uses string `yaml:"uses"`
			Dir  string `yaml:"working-directory"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

// followAction follows an action of the repository. It ignores actions of other repositories.
func (k *walk) followAction(uses, via string, depth int) {
	local, found := strings.CutPrefix(uses, "./")
	if !found || depth > maxNested {
		return
	}
	via += ": " + uses
	for _, name := range []string{"action.yml", "action.yaml"} {
		if file, content := k.read(path.Join(local, name)); content != nil {
			k.addReached(file, via)
			k.followActionSteps(readAction(content), path.Dir(file), via, depth)
			return
		}
	}
}

// readAction reads an action.yml. It returns an empty one if that is not readable.
func readAction(content []byte) (a actionFile) {
	var root yaml.Node
	if left := maxNodes; yaml.Unmarshal(content, &root) != nil || !isWithinLimits(&root, &left, 0) || root.Decode(&a) != nil {
		return actionFile{}
	}
	return a
}

// followActionSteps follows the programs and steps of an action in a folder.
func (k *walk) followActionSteps(a actionFile, folder, via string, depth int) {
	for _, program := range []string{a.Runs.Main, a.Runs.Pre, a.Runs.Post, a.Runs.Image} {
		if program != "" && !strings.Contains(program, "://") {
			k.followFile(path.Join(folder, program), caller{via: via})
		}
	}
	actionPath := strings.NewReplacer("${{ github.action_path }}", folder, "${{github.action_path}}", folder, "$GITHUB_ACTION_PATH", folder, "${GITHUB_ACTION_PATH}", folder)
	for _, step := range a.Runs.Steps {
		if step.Run != "" {
			k.followScript(actionPath.Replace(step.Run), caller{dirs: []string{folderOf(step.Dir)}, via: via})
		} else {
			k.followAction(step.Uses, via+" → uses", depth+1)
		}
	}
}

// folderOf returns a working directory as a path in the repository. Expressions become ".".
func folderOf(dir string) string {
	dir = expressions().ReplaceAllString(dir, ".")
	return path.Clean(strings.TrimPrefix(dir, "/"))
}
