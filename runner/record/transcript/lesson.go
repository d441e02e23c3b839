package transcript

import "slices"

// Memory holds the lessons of earlier runs, fixed for the whole run.
type Memory struct {
	File    string   `json:"file"`    // of the base commit
	SHA256  string   `json:"sha256"`  // of its content
	Lessons []Lesson `json:"lessons"` // all that it has
	Chosen  []string `json:"chosen"`  // ids of those that fit the task, the best first
}

// Lesson is a known fact about the repository. As an event it is a lesson proposed by the model or
// by the earlier run whose pull request this one continues.
type Lesson struct {
	ID       string   `json:"id"`
	Claim    string   `json:"claim"`
	Evidence []string `json:"evidence"`
	Run      string   `json:"run"`
	Date     string   `json:"date"`
}

// Lessons lists the lessons in the file as proposed to people, with fixed evidence. The last event
// counts.
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

// maxProposed bounds the lessons of a view. Real runs have fewer.
const maxProposed = 200

// lesson adds a proposed lesson once.
func (f *fold) lesson(_ Event, d Lesson) {
	v := f.view
	if len(v.Proposed) < maxProposed && !slices.ContainsFunc(v.Proposed, func(known Lesson) bool { return known.ID == d.ID }) {
		v.Proposed = append(v.Proposed, d)
	}
}
