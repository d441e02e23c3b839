package stage

import "os"

func init() {
	if len(os.Args) == 2 && os.Args[0] == Name {
		enter(os.Args[1])
	}
}
