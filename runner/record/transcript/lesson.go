package transcript

import "slices"

// Memory is what the run remembers of earlier ones: all of it, as it stays for the run.
type Memory struct {
	File    string   `json:"file"`    // of the base commit
	SHA256  string   `json:"sha256"`  // of its content
	Lessons []Lesson `json:"lessons"` // all that it has
	Chosen  []string `json:"chosen"`  // ids of those that fit the task, the best first
}

// Lesson is something that is known of the repository. As an event it is one that the model
// proposes, or that an earlier run of the task did, whose pull request this one goes on with.
type Lesson struct {
	ID       string   `json:"id"`
	Claim    string   `json:"claim"`
	Evidence []string `json:"evidence"`
	Run      string   `json:"run"`
	Date     string   `json:"date"`
}

// Lessons are those that the runner wrote to the file, evidence pinned, as they are proposed to
// people. The last event holds.
type Lessons struct {
	File    string   `json:"file"`
	In      string   `json:"in"` // change, pull_request
	Lessons []Lesson `json:"lessons"`
}

// The values of Lessons.In.
const (
	LessonsInChange = "change"
	LessonsAlone    = "pull_request"
)

// mostProposed bounds what a record can have a view hold: no run comes near.
const mostProposed = 200

// lesson adds one that is proposed, once.
func (f *fold) lesson(_ Event, d Lesson) {
	v := f.view
	if len(v.Proposed) < mostProposed && !slices.ContainsFunc(v.Proposed, func(known Lesson) bool { return known.ID == d.ID }) {
		v.Proposed = append(v.Proposed, d)
	}
}
