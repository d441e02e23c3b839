package stage

import "os"

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name {
		enter()
	}
}
