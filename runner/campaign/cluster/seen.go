package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Labels and annotations of the pods of an Indexed Job
// (https://kubernetes.io/docs/reference/labels-annotations-taints/).
const (
	labelJob        = "batch.kubernetes.io/job-name"
	annotationIndex = "batch.kubernetes.io/job-completion-index"
)

// Seen is what a cluster says of a wave.
type Seen struct {
	// Reports are of the last pod of each index, none where that one told nothing; and of those that never
	// began.
	Reports []campaign.Report
	Over    []string // targets of which nothing runs any more, and nothing will
}

// listed is what is read of what kubectl get -o json prints, for one thing or for several.
type listed struct {
	Kind     string   `json:"kind"`
	Items    []listed `json:"items"`
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Created     time.Time         `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Parallelism int `json:"parallelism"`
	} `json:"spec"`
	Status struct {
		Succeeded  int `json:"succeeded"`
		Failed     int `json:"failed"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		CompletedIndexes string `json:"completedIndexes"`
		FailedIndexes    string `json:"failedIndexes"`
		Containers       []struct {
			Name  string `json:"name"`
			State struct {
				Terminated *struct {
					Message string `json:"message"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// Read reads what kubectl get jobs,pods -o json prints. Things of others are left alone. A report
// counts once its index is over: a pod after it may go on with the run.
func Read(raw []byte, h *campaign.Handout) (Seen, error) {
	var all listed
	if err := json.Unmarshal(raw, &all); err != nil {
		return Seen{}, fmt.Errorf("read what kubectl says: %w; it is that of kubectl get jobs,pods -o json", err)
	}
	if all.Kind == "Job" || all.Kind == "Pod" {
		all.Items = []listed{all}
	}
	name := JobName(h.Campaign, h.Wave)
	job, err := all.only(name)
	if err != nil {
		return Seen{}, fmt.Errorf("%w, in which wave %d runs; ask it with kubectl get jobs,pods -o json, in its namespace", err, h.Wave)
	}
	over, err := job.over(len(h.Runs))
	if err != nil {
		return Seen{}, fmt.Errorf("read the indexes of the Job %s: %w", name, err)
	}
	pods := slices.DeleteFunc(all.Items, func(o listed) bool {
		return o.Kind != "Pod" || o.Metadata.Namespace != job.Metadata.Namespace || o.Metadata.Labels[labelJob] != name
	})
	if len(pods) == 0 && job.Status.Succeeded+job.Status.Failed > 0 {
		return Seen{}, fmt.Errorf("kubectl says nothing of the pods of the Job %s, which say what became of the runs; ask it with kubectl get jobs,pods -o json, and where they are gone for good, end wave %d with --over alone", name, h.Wave)
	}
	slices.SortStableFunc(pods, func(a, b listed) int { return a.Metadata.Created.Compare(b.Metadata.Created) })
	return seen(h, job, over, pods), nil
}

// only is the one Job of a name.
func (o listed) only(name string) (listed, error) {
	jobs := slices.DeleteFunc(slices.Clone(o.Items), func(o listed) bool { return o.Kind != "Job" || o.Metadata.Name != name })
	switch len(jobs) {
	case 0:
		return listed{}, fmt.Errorf("kubectl says nothing of the Job %s", name)
	case 1:
		return jobs[0], nil
	}
	return listed{}, fmt.Errorf("kubectl tells of %d Jobs %s", len(jobs), name)
}

func seen(h *campaign.Handout, job listed, over []bool, pods []listed) Seen {
	var s Seen
	last := map[int]campaign.Report{}
	for _, pod := range pods {
		index, err := strconv.Atoi(pod.Metadata.Annotations[annotationIndex])
		if err != nil || index < 0 || index >= len(over) {
			continue
		}
		r, is := pod.report()
		if !is || r.Target != h.Runs[index].Target.Key {
			delete(last, index) // what the pod before it told lacks what this one was paid
			continue
		}
		last[index] = r
	}
	idle := job.idle(over, pods)
	for index, is := range over {
		if !is {
			continue
		}
		s.Over = append(s.Over, h.Runs[index].Target.Key)
		if r, told := last[index]; told {
			s.Reports = append(s.Reports, r)
		} else if index >= idle {
			s.Reports = append(s.Reports, notBegun(h.Claimed(index)))
		}
	}
	return s
}

var errNotBegun = errors.New("its Job failed before it began")

func notBegun(c campaign.Claimed) campaign.Report {
	r := campaign.Lost(c, errNotBegun)
	r.CostUSD, r.Tokens = new(float64), new(int64)
	return r
}

// idle is the first index of which it is certain that it never began. A Job begins the lowest ones
// first: above the highest that is seen there are at most those of pods that are gone, which the Job
// counted, and of those that were at work when it failed.
func (o listed) idle(over []bool, pods []listed) int {
	if o.Spec.Parallelism <= 0 {
		return len(over)
	}
	highest := -1
	for _, pod := range pods {
		if index, err := strconv.Atoi(pod.Metadata.Annotations[annotationIndex]); err == nil {
			highest = max(highest, min(index, len(over)))
		}
	}
	ended := make([]bool, len(over))
	if errors.Join(mark(ended, o.Status.CompletedIndexes), mark(ended, o.Status.FailedIndexes)) != nil {
		return len(over)
	}
	for index, is := range ended {
		if is {
			highest = max(highest, index)
		}
	}
	gone := max(o.Status.Succeeded+o.Status.Failed-len(pods), 0)
	return highest + 1 + min(gone, len(over)) + min(o.Spec.Parallelism, len(over))
}

// report is what the run said when its container ended.
func (pod listed) report() (campaign.Report, bool) {
	for _, c := range pod.Status.Containers {
		if c.Name != container || c.State.Terminated == nil {
			continue
		}
		r, err := campaign.DecodeReport([]byte(c.State.Terminated.Message))
		return r, err == nil
	}
	return campaign.Report{}, false
}

// over says of each index of a Job whether nothing will run for it any more.
func (o listed) over(indexes int) ([]bool, error) {
	over := make([]bool, indexes)
	for _, c := range o.Status.Conditions {
		if (c.Type == "Complete" || c.Type == "Failed") && c.Status == "True" {
			for i := range over {
				over[i] = true
			}
			return over, nil
		}
	}
	for _, text := range []string{o.Status.CompletedIndexes, o.Status.FailedIndexes} {
		if err := mark(over, text); err != nil {
			return nil, err
		}
	}
	return over, nil
}

// mark reads indexes as a Job has them, such as 0,3-5.
func mark(over []bool, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			return err
		}
		for i := max(from, 0); i <= min(to, len(over)-1); i++ {
			over[i] = true
		}
	}
	return nil
}
