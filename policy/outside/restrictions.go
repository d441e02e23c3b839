package outside

// Restrictions restricts commands' access to files that programs outside of the sandbox use, such as git's
// configuration. Paths are absolute.
type Restrictions struct {
	ReadOnly []string // folders and files that commands may read and not change
	// Cleaned maps files of ReadOnly that contain credentials to the content that commands see.
	// UserCleaned does the same for files of the user and the system.
	Cleaned, UserCleaned map[string][]byte
	// Remedy is what to do if cleaned content cannot be shown, as the beginning of a sentence.
	Remedy string
	Secret []string // files hidden from commands
	// Variables maps names of variables to files, for sandboxes without mounts. The variable gets the
	// path of the file's cleaned copy in UserCleaned, or of the file itself.
	Variables map[string]string
}
