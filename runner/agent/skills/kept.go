package skills

import (
	"github.com/agent-ci/agent-ci/runner/record"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// skillsFile in the run directory holds the skills of a run.
const skillsFile = "skills.json"

// Offer is the set of skills that a run offers to its model. It stays the same for the whole run.
type Offer struct {
	Skills    []Skill `json:"skills"`    // skills that the model can load
	Catalogue string  `json:"catalogue"` // the list of skills that the model gets
	// Room is how many bytes of skills the model may load: a quarter of its window. 0 means no limit.
	Room int64 `json:"room"`
}

// NewOffer returns an offer of skills for a model with a window of this many tokens. redact replaces secrets in the
// skills' texts. leftOut is the number of skills for which the catalogue has no room.
func NewOffer(all []Skill, window int64, redact func(string) string) (offer Offer, leftOut int) {
	redacted := make([]Skill, len(all))
	for i, s := range all {
		s.Description, s.Text = redact(s.Description), redact(s.Text)
		redacted[i] = s
	}
	offer.Catalogue, offer.Skills = catalogue(redacted, window)
	offer.Room = window * bytesInToken / 4
	return offer, len(all) - len(offer.Skills)
}

// Write writes the offer into the run directory and records its digest. It does nothing for an empty offer.
func (o Offer) Write(rec *record.Record) error {
	if len(o.Skills) == 0 {
		return nil
	}
	digest, err := rec.WriteRecorded(skillsFile, o)
	if err != nil {
		return err
	}
	event := transcript.Skills{File: skillsFile, SHA256: digest}
	for _, s := range o.Skills {
		event.Skills = append(event.Skills, transcript.Skill{Name: s.Name, Path: s.Path, SHA256: s.SHA256, Bytes: s.Bytes})
	}
	return rec.Append(event)
}

// ReadOffer reads the offer of a recorded run from its directory. It returns an error if the file's digest differs
// from the recorded one. A run without skills has an empty offer.
func ReadOffer(dir *record.Directory, recorded transcript.Skills) (offer Offer, err error) {
	if recorded.File == "" {
		return offer, nil
	}
	err = dir.ReadRecorded(skillsFile, recorded.SHA256, "the skills of the run", &offer)
	return offer, err
}
