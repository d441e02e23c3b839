package main_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"gopkg.in/yaml.v3"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// checkCommands have the forge's commits checked, as workflows and other apps do.
var checkCommands = map[string]func(*testscript.TestScript, bool, []string){
	"jobs":     usage("BRANCH FILE", addJobs),
	"check":    usage("BRANCH NAME APP CONCLUSION [TITLE [SUMMARY]]", addCheck),
	"attempts": negatable("RUN COUNT", checkAttempts),
	"pushed":   usage("BRANCH LOGIN", addPush),
}

// workflowFile describes a run of a workflow.
type workflowFile struct {
	Name, Event    string
	HeadRepository string `yaml:"head_repository"`
	Jobs, Again    []jobFile
}

type jobFile struct {
	Name, Status, Conclusion, Runner string
	Steps                            []struct {
		Name, Conclusion string
		Started          time.Time
		Completed        time.Time
	}
	Log      string // a file of the script
	LogBytes int64  `yaml:"log_bytes"` // to which the log is repeated
	Expired  bool
}

func (j jobFile) job(ts *testscript.TestScript) forgetest.Job {
	job := forgetest.Job{Name: j.Name, Status: j.Status, Conclusion: j.Conclusion, Runner: j.Runner, LogBytes: j.LogBytes, LogExpired: j.Expired}
	if j.Log != "" {
		job.Log = ts.ReadFile(j.Log)
	}
	for _, s := range j.Steps {
		job.Steps = append(job.Steps, forgetest.Step{Name: s.Name, Conclusion: s.Conclusion, Started: s.Started, Completed: s.Completed})
	}
	return job
}

// tipOf is the commit of a branch of the forge, or what is a commit already.
func tipOf(ts *testscript.TestScript, branch string) string {
	return strings.TrimSpace(git(ts, worldOf(ts).repo.Dir, "rev-parse", branch))
}

// addJobs adds a run of a workflow that a file describes to the newest commit of a
// branch, and prints its id: jobs BRANCH FILE.
func addJobs(ts *testscript.TestScript, args []string) {
	var file workflowFile
	decoder := yaml.NewDecoder(strings.NewReader(ts.ReadFile(args[1])))
	decoder.KnownFields(true)
	ts.Check(decoder.Decode(&file))
	run := forgetest.WorkflowRun{Name: file.Name, Event: file.Event, HeadRepository: file.HeadRepository, Branch: args[0], SHA: tipOf(ts, args[0])}
	for _, j := range file.Jobs {
		run.Jobs = append(run.Jobs, j.job(ts))
	}
	for _, j := range file.Again {
		run.Again = append(run.Again, j.job(ts))
	}
	fmt.Fprintf(ts.Stdout(), "%d\n", worldOf(ts).repo.AddWorkflow(run))
}

// addCheck adds what an app, or nobody with a status, says of the newest commit of a
// branch: check BRANCH NAME APP CONCLUSION [TITLE [SUMMARY]], where the app may be "".
func addCheck(ts *testscript.TestScript, args []string) {
	said := append(args[4:], "", "")
	worldOf(ts).repo.AddCheck(forgetest.Check{SHA: tipOf(ts, args[0]), Name: args[1], App: args[2], Conclusion: args[3], Title: said[0], Summary: said[1]})
}

// checkAttempts compares how often a run of a workflow ran: attempts RUN COUNT.
func checkAttempts(ts *testscript.TestScript, neg bool, args []string) {
	run := int64(integer(ts, args[0]))
	if got := strconv.Itoa(worldOf(ts).repo.Attempts(run)); (got == args[1]) == neg {
		ts.Fatalf("the run %d has %s attempts", run, got)
	}
}

// addPush says who pushed what a branch points to, where that was not done through the
// forge: pushed BRANCH LOGIN.
func addPush(ts *testscript.TestScript, args []string) {
	worldOf(ts).repo.AddPush(args[0], forgetest.User{Login: args[1], ID: 1, Type: account(args[1])["type"].(string)})
}
