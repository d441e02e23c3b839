package transcript

import "slices"

// Memory is an event with the lessons of earlier runs. They stay the same for the whole run.
type Memory struct {
	File      string   `json:"file"`    // on the base commit
	SHA256    string   `json:"sha256"`  // of its content
	Lessons   []Lesson `json:"lessons"` // all lessons of the file
	ChosenIDs []string `json:"chosen"`  // ids of the lessons that fit the task, best first
}

// Lesson is a fact about the repository. As an event, it is a lesson that the model proposes, or
// that the earlier run proposed whose pull request this run continues.
type Lesson struct {
	ID       string   `json:"id"`
	Claim    string   `json:"claim"`
	Evidence []string `json:"evidence"`
	Run      string   `json:"run"`
	Date     string   `json:"date"`
}

// Lessons is an event with the lessons proposed to people, with their final evidence. The last
// event counts.
type Lessons struct {
	File    string   `json:"file"`
	In      string   `json:"in"` // change or pull_request
	Lessons []Lesson `json:"lessons"`
}

// The values of Lessons.In.
const (
	LessonsInChange = "change"
	LessonsAlone    = "pull_request"
)

// maxProposed limits the proposed lessons in a view. Real runs have fewer.
const maxProposed = 200

// lesson adds a proposed lesson, unless it is known.
func (f *Folder) lesson(d Lesson) {
	v := f.view
	if len(v.ProposedLessons) < maxProposed && !slices.ContainsFunc(v.ProposedLessons, func(known Lesson) bool { return known.ID == d.ID }) {
		v.ProposedLessons = append(v.ProposedLessons, d)
	}
}
