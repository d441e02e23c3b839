package outside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// auditVariable names a variable with the path of a log file. Only tests set it (-ldflags -X); it
// is empty in releases.
var auditVariable string

// Start is a line of the log.
type Start struct {
	Use       string
	Path, Dir string
	Args      []string
	Variables []string // names of the variables that the program gets
	Withheld  []string // names of the caller's variables that the use does not list
}

// logStart appends a start to the log file, if there is one. env holds the variables of the caller.
func (u *Use) logStart(path, dir string, env, args []string) error {
	if auditVariable == "" {
		return nil
	}
	file := os.Getenv(auditVariable)
	if file == "" {
		return nil
	}
	s := Start{Use: u.Name, Path: path, Dir: dir, Args: args}
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if u.isListed(name) {
			s.Variables = append(s.Variables, name)
		} else {
			s.Withheld = append(s.Withheld, name)
		}
	}
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("note a start: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("note a start: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
