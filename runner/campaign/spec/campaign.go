package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-ci/agent-ci/policy/clip"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"

	"github.com/agent-ci/agent-ci/runner/task/config"
	"github.com/agent-ci/agent-ci/runner/task/job"

	"gopkg.in/yaml.v3"
)

// Campaign is a campaign file with its defaults filled in: one job over many targets.
type Campaign struct {
	Version    int      `json:"version" config:"required" span:"1..1" default:"1" about:"Version of the format."`
	Name       string   `json:"name" config:"required" form:"campaign_name" about:"Name of the campaign. It is part of the branches and of the folder in the ledger; another name is another campaign."`
	Targets    Targets  `json:"targets" about:"Where the job runs. A plan freezes each target at a commit of a branch."`
	Job        Template `json:"job" about:"The job, as in a job file. Its texts may contain marks such as ${{ target.repository }}. Commands take such values from variables of policy.env.set."`
	JobFile    string   `json:"job_file" form:"relative_file" about:"File with the job, relative to the campaign file; in place of job."`
	Pilot      int      `json:"pilot" span:"0..10000" about:"Number of targets that run first. The others wait for agent-ci campaign approve. 0: no pilot."`
	Budget     Spending `json:"budget" about:"What the campaign may use, over days and starts. 0 is no limit."`
	Rollout    Rollout  `json:"rollout" about:"How fast targets start."`
	StopIf     StopIf   `json:"stop_if" about:"When the campaign stops until agent-ci campaign resume."`
	OnExisting string   `json:"on_existing" values:"skip|update" default:"skip" about:"What happens to a target whose branch has an open pull request: leave it alone, or update it."`

	Kubernetes Kubernetes `json:"kubernetes" about:"How runs work in a cluster."`
}

// Targets says where targets come from. A campaign has the targets of all fields together.
type Targets struct {
	List    []Target `json:"list" example:"[{repository: octo-org/widgets, values: {from: \"1\"}}]" about:"Targets, one by one."`
	Queries []Query  `json:"queries" example:"[{organisation: octo-org, topic: go}]" about:"Searches on GitHub for targets, at each plan. Archived repositories are left out."`
	File    string   `json:"file" form:"relative_file" about:"File with one target a line: OWNER/REPO, OWNER/REPO@SHA or OWNER/REPO#N, with an optional path, or JSON as in targets.list."`
	Folder  string   `json:"folder" form:"relative_file" about:"Folder with repositories OWNER/REPO.git, for campaigns without GitHub. Changes are pushed there. Empty: the repositories are on GitHub."`
	Most    int      `json:"most" span:"1..100000" default:"10000" about:"Targets that a plan may have. A plan with more is refused."`
}

// Target is a place to run the job: a repository, an issue or a sub-folder.
type Target struct {
	Repository string            `json:"repository" form:"target" about:"OWNER/REPO, or OWNER/REPO@SHA for that commit of the base branch. Empty: that of the issue."`
	Base       string            `json:"base" form:"branch" about:"Branch to start from and to merge into. Empty: the default branch."`
	Issue      string            `json:"issue" config:"scalars" form:"issue" about:"Issue of the repository: OWNER/REPO#N or its address, or N or \"#N\"."`
	Path       string            `json:"path" form:"folder" about:"Sub-folder of a monorepo."`
	Values     map[string]string `json:"values" form:"value" names:"variable" example:"{from: \"1.24\", to: \"1.25\"}" about:"Values of the marks ${{ values.NAME }} in the job."`
}

// Query is a search for targets on the forge.
type Query struct {
	Organisation string   `json:"organisation" form:"login" about:"Account that owns the repositories."`
	Topic        string   `json:"topic" form:"topic" about:"Topic of the repositories."`
	Code         string   `json:"code" form:"one_line" about:"Words of a code search. Each repository with a hit is a target."`
	Issues       string   `json:"issues" form:"one_line" about:"Words of a search for open issues. Each issue is a target."`
	Labels       []string `json:"labels" form:"label" about:"Labels of the open issues."`
}

// Spending limits the usage of a campaign. 0 means no limit.
type Spending struct {
	USD                  float64 `json:"usd" about:"US dollars for models. It needs a known price and limits.cost_usd."`
	USDPerDay            float64 `json:"usd_per_day" about:"US dollars a day (UTC), for all campaigns of the ledger together."`
	Tokens               int64   `json:"tokens" span:"0.." about:"Tokens of input and output."`
	Runs                 int     `json:"runs" span:"0.." about:"Runs, repeated ones included."`
	OpenPRs              int     `json:"open_prs" span:"0.." about:"Open pull requests of the campaign."`
	OpenPRsPerRepository int     `json:"open_prs_per_repository" span:"0.." about:"Open pull requests of the campaign in one repository."`
}

// Rollout says how fast targets start.
type Rollout struct {
	PerHour int      `json:"per_hour" span:"0.." about:"Runs that may start in an hour. 0 is no limit."`
	Windows []string `json:"windows" form:"window" example:"[Mon-Fri 09:00-17:00 Europe/Berlin]" about:"When runs may start. Empty: always."`
	AtOnce  int      `json:"at_once" span:"1..256" default:"4" example:"8" about:"Runs at a time."`
}

// StopIf says when a campaign stops because its runs fail for the same reason.
type StopIf struct {
	SameReason string `json:"same_reason" form:"share" about:"How many failures with one reason among the last runs stop it. 3 of 10: at least 3 of the last 10."`
}

// Kubernetes configures runs in a cluster.
type Kubernetes struct {
	Image     string `json:"image" form:"image_name" example:"registry.example.com/agent-ci@sha256:…" about:"Image of agent-ci, best with its digest. A cluster needs it."`
	Namespace string `json:"namespace" form:"namespace" about:"Namespace of all objects. Empty: that of kubectl."`
	Secret    string `json:"secret" form:"object_name" default:"agent-ci-credentials" about:"Secret with variables of the runs: OPENAI_API_KEY, GITHUB_TOKEN."`
	Volume    string `json:"volume" form:"object_name" about:"PersistentVolumeClaim for run directories, from which another pod resumes a lost one. Empty: each target is tried once."`
	CPU       string `json:"cpu" form:"quantity" default:"1" about:"Processors that a run requests."`
	Memory    string `json:"memory" form:"quantity" default:"4Gi" about:"Memory that a run requests, and its limit."`
}

// ParsedWindows returns the rollout's windows. Invalid ones are skipped: Load has reported them.
func (r Rollout) ParsedWindows() (all []Window) {
	for _, text := range r.Windows {
		if w, err := parseWindow(text); err == nil {
			all = append(all, w)
		}
	}
	return all
}

// Counts returns the numbers of a rule such as "3 of 10", or zeros without a rule.
func (s StopIf) Counts() (failures, runs int) {
	if _, err := fmt.Sscanf(s.SameReason, "%d of %d", &failures, &runs); err != nil {
		return 0, 0
	}
	return failures, runs
}

// Format returns the description of the campaign file's format.
var Format = sync.OnceValue(func() *config.Format {
	root := config.NewKey(reflect.TypeFor[Campaign](), campaignTerms())
	root.Suggest = suggestJobKey
	return &config.Format{Root: root, Name: "campaign"}
})

// Load reads a campaign file, and its job_file by readBeside. The error is config.Problems of both files.
func Load(name string, data []byte, readBeside func(name string) ([]byte, error)) (*Campaign, error) {
	c := new(Campaign)
	d := &campaignChecker{Format().Decoder(c)}
	d.Add(config.Layer{Name: name, Data: data})
	if !d.HasProblemBelow("") {
		d.checkRelations(c)
	}
	if len(d.Problems()) == 0 && c.JobFile != "" {
		d.readJobFile(c, readBeside)
	}
	if c.Job.node != nil {
		d.AddProblems(c.Job.problems()...)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// campaignChecker decodes a campaign file and checks its keys against each other.
type campaignChecker struct{ *config.Decoder }

// readJobFile reads the job from the file named by job_file.
func (d *campaignChecker) readJobFile(c *Campaign, readBeside func(name string) ([]byte, error)) {
	data, err := readBeside(c.JobFile)
	if err != nil {
		d.Report("job_file", fmt.Sprintf("cannot be read: %v", err))
		return
	}
	node, unfit := job.Format().Parse(data)
	if unfit != nil {
		unfit.File = c.JobFile
		d.AddProblems(*unfit)
		return
	}
	c.Job = Template{file: c.JobFile, node: node}
}

// checkRelations reports mistakes that concern several keys.
func (d *campaignChecker) checkRelations(c *Campaign) {
	switch {
	case d.IsSet("job") && d.IsSet("job_file"):
		d.Report("job_file", "is given beside job; give only one of them")
	case !d.IsSet("job") && c.JobFile == "" && !d.HasProblemBelow("job_file"):
		d.Report("job", "is missing: give job, or job_file")
	}
	t := c.Targets
	d.ReportIf(len(t.List)+len(t.Queries) == 0 && t.File == "", "targets", "names nothing: give list, queries or file")
	d.ReportIf(len(t.Queries) > 0 && t.Folder != "", "targets.queries", "asks GitHub, and targets.folder has the repositories; give only one of them")
	for i, q := range t.Queries {
		d.checkQuery(config.JoinPath("targets.queries", i), q)
	}
	for i, target := range t.List {
		path := config.JoinPath("targets.list", i)
		if _, _, _, err := target.Locate(); err != nil {
			d.Report(path, err.Error())
		}
	}
	if failures, runs := c.StopIf.Counts(); c.StopIf.SameReason != "" && (failures < 1 || runs < failures) {
		d.Report("stop_if.same_reason", "must be like 3 of 10: at least 1, and not more than the second number")
	}
}

// checkQuery reports mistakes in how a query combines its keys.
func (d *campaignChecker) checkQuery(path string, q Query) {
	asked := 0 // kinds of targets
	for _, asks := range []bool{q.Topic != "", q.Code != "", q.Issues != "" || len(q.Labels) > 0} {
		if asks {
			asked++
		}
	}
	d.ReportIf(asked == 0 && q.Organisation == "", path, "asks for nothing: give organisation, topic, code, issues or labels")
	d.ReportIf(asked > 1, path, "asks for several things; give a query for each")
}

// Window is a time of day on some days of the week.
type Window struct {
	days     [7]bool
	from, to time.Duration // since midnight
	zone     *time.Location
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

var windowText = lazyregexp.New(`^(?:([A-Za-z,-]+) )?(\d\d):(\d\d)-(\d\d):(\d\d)(?: ([^ ]+))?$`)

// parseWindow parses a window such as "Mon-Fri 09:00-17:00 Europe/Berlin". The default is all days, and UTC. A window
// that ends before it begins ends on the next day.
func parseWindow(text string) (Window, error) {
	wrong := fmt.Errorf("must be like %q", "Mon-Fri 09:00-17:00 Europe/Berlin")
	parts := windowText().FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if parts == nil {
		return Window{}, wrong
	}
	days, isDays := parseDays(cmp.Or(parts[1], "sun-sat"))
	from, isFrom := parseClock(parts[2], parts[3])
	to, isTo := parseClock(parts[4], parts[5])
	if !isDays || !isFrom || !isTo || from == to {
		return Window{}, wrong
	}
	zone, err := time.LoadLocation(parts[6])
	if err != nil || parts[6] == "Local" { // Local would depend on the machine
		return Window{}, fmt.Errorf("names a time zone that is not known: %s", clip.Bytes(parts[6], 40))
	}
	return Window{days, from, to, zone}, nil
}

// parseDays parses days and ranges of days, separated by commas, such as "mon,wed-fri". A range such as sat-mon
// continues after the week's end. ok is false for other texts.
func parseDays(text string) (days [7]bool, ok bool) {
	for part := range strings.SplitSeq(strings.ToLower(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if from < 0 || to < 0 {
			return days, false
		}
		days[to] = true
		for day := from; day != to; day = (day + 1) % len(days) {
			days[day] = true
		}
	}
	return days, true
}

// parseClock returns the time since midnight, from 00:00 to 24:00. hours and minutes are digits. ok is false for a
// later time or more than 59 minutes.
func parseClock(hours, minutes string) (at time.Duration, ok bool) {
	h, _ := strconv.Atoi(hours)
	m, _ := strconv.Atoi(minutes)
	at = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	return at, m < 60 && at <= 24*time.Hour
}

// Contains reports whether a moment is in the window.
func (w Window) Contains(at time.Time) bool {
	at = at.In(w.zone)
	sinceMidnight := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	today, yesterday := w.days[at.Weekday()], w.days[(at.Weekday()+6)%7]
	if w.from < w.to {
		return today && sinceMidnight >= w.from && sinceMidnight < w.to
	}
	// The window ends on the next day, so yesterday's may still be open.
	return today && sinceMidnight >= w.from || yesterday && sinceMidnight < w.to
}

// IsCampaign reports whether a file describes a campaign: it has a key unknown to jobs.
func IsCampaign(data []byte) bool {
	node, unfit := Format().Parse(data)
	if unfit != nil || node.Kind != yaml.MappingNode {
		return false
	}
	for pair := range slices.Chunk(node.Content, 2) {
		if name := pair[0].Value; job.Format().Root.Key(name) == nil && Format().Root.Key(name) != nil {
			return true
		}
	}
	return false
}
