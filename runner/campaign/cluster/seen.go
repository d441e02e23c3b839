package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy/plainjson"
	"github.com/agent-ci/agent-ci/runner/campaign"
)

// Labels and annotations of the pods of an Indexed Job
// (https://kubernetes.io/docs/reference/labels-annotations-taints/).
const (
	labelJob        = "batch.kubernetes.io/job-name"
	annotationIndex = "batch.kubernetes.io/job-completion-index"
)

// WaveState is the state of a wave in the cluster.
type WaveState struct {
	Reports []campaign.Report // from the last pod of each finished index
	Ended   []string          // keys of targets whose index has ended for good
}

// kubeObject is what is used of the output of kubectl get -o json: one object or a list.
type kubeObject struct {
	Kind     string       `json:"kind"`
	Items    []kubeObject `json:"items"`
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Created     time.Time         `json:"creationTimestamp"`
	} `json:"metadata"`
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

// ParseState parses the output of kubectl get jobs,pods -o json for a wave. It ignores other objects. A
// report counts only after its index has ended, since a later pod may resume the run.
func ParseState(raw []byte, wave []campaign.Claimed) (WaveState, error) {
	var all kubeObject
	if err := plainjson.Unmarshal(raw, &all); err != nil {
		return WaveState{}, fmt.Errorf("read what kubectl says: %w; it is that of kubectl get jobs,pods -o json", err)
	}
	if all.Kind == "Job" || all.Kind == "Pod" {
		all.Items = []kubeObject{all}
	}
	name := jobName(wave)
	job, err := all.findJob(name)
	if err != nil {
		return WaveState{}, fmt.Errorf("%w, in which wave %d runs; ask it with kubectl get jobs,pods -o json, in its namespace", err, wave[0].Wave)
	}
	ended, err := job.endedIndexes(len(wave))
	if err != nil {
		return WaveState{}, fmt.Errorf("read the indexes of the Job %s: %w", name, err)
	}
	pods := all.podsOf(job)
	if len(pods) == 0 && job.Status.Succeeded+job.Status.Failed > 0 {
		return WaveState{}, fmt.Errorf("kubectl shows no pod of the Job %s, and the pods have the reports of the runs; ask it with kubectl get jobs,pods -o json, and if they are gone for good, end wave %d with --over alone", name, wave[0].Wave)
	}
	lastPods := lastPodByIndex(pods)
	var s WaveState
	for index, run := range wave {
		if !ended[index] {
			continue
		}
		s.Ended = append(s.Ended, run.Target.Key)
		if r, found := lastPods[index].report(); found && r.Target == run.Target.Key {
			s.Reports = append(s.Reports, r)
		}
	}
	return s, nil
}

// podsOf returns the pods of a Job.
func (o kubeObject) podsOf(job kubeObject) []kubeObject {
	return slices.DeleteFunc(slices.Clone(o.Items), func(pod kubeObject) bool {
		return pod.Kind != "Pod" || pod.Metadata.Namespace != job.Metadata.Namespace || pod.Metadata.Labels[labelJob] != job.Metadata.Name
	})
}

// lastPodByIndex returns the newest pod of each index.
func lastPodByIndex(pods []kubeObject) map[int]kubeObject {
	slices.SortStableFunc(pods, func(a, b kubeObject) int { return a.Metadata.Created.Compare(b.Metadata.Created) })
	last := map[int]kubeObject{}
	for _, pod := range pods {
		if index, err := strconv.Atoi(pod.Metadata.Annotations[annotationIndex]); err == nil {
			last[index] = pod
		}
	}
	return last
}

// findJob returns the only Job called name. It returns an error if there is none or more than one.
func (o kubeObject) findJob(name string) (kubeObject, error) {
	jobs := slices.DeleteFunc(slices.Clone(o.Items), func(o kubeObject) bool { return o.Kind != "Job" || o.Metadata.Name != name })
	switch len(jobs) {
	case 0:
		return kubeObject{}, fmt.Errorf("kubectl says nothing of the Job %s", name)
	case 1:
		return jobs[0], nil
	}
	return kubeObject{}, fmt.Errorf("kubectl tells of %d Jobs %s", len(jobs), name)
}

// report returns the run's report from its container's termination message. found is false if the container has
// not ended, or if the message is no report.
func (pod kubeObject) report() (r campaign.Report, found bool) {
	for _, c := range pod.Status.Containers {
		if c.Name != container || c.State.Terminated == nil {
			continue
		}
		r, err := campaign.DecodeReport([]byte(c.State.Terminated.Message))
		return r, err == nil
	}
	return campaign.Report{}, false
}

// endedIndexes reports, for each of the first indexes of a Job, whether it has ended for good. The Job's own end
// ends them all.
func (o kubeObject) endedIndexes(indexes int) ([]bool, error) {
	ended := make([]bool, indexes)
	for _, c := range o.Status.Conditions {
		if (c.Type == "Complete" || c.Type == "Failed") && c.Status == "True" {
			for i := range ended {
				ended[i] = true
			}
			return ended, nil
		}
	}
	for _, text := range []string{o.Status.CompletedIndexes, o.Status.FailedIndexes} {
		if err := markIndexes(ended, text); err != nil {
			return nil, err
		}
	}
	return ended, nil
}

// markIndexes sets ended for the indexes in text, which has a Job's format: 0,3-5.
func markIndexes(ended []bool, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
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
		for i := max(from, 0); i <= min(to, len(ended)-1); i++ {
			ended[i] = true
		}
	}
	return nil
}
