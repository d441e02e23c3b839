package editformat

// MismatchError is an answer of which blocks don't fit, so that none is applied.
// Its text is for the model.
type MismatchError struct {
	text string
}

func (e *MismatchError) Error() string { return e.text }

// Apply gives the new texts of the files that edits change; nil is a file that
// there is to be no more. was holds the texts of all [Paths], nil where there is
// no file. The notes tell what was tolerated. An error is a [*MismatchError].
func Apply(_ Format, _ []Edit, _ map[string]*string) (now map[string]*string, notes []string, err error) {
	return map[string]*string{}, nil, nil
}
