package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/secrets"
	"github.com/agent-ci/agent-ci/runner/settings"
)

// mostShown is how many bytes a page may have that a browser is given unasked: with
// more it takes all memory of a desktop.
const mostShown = 64 << 20

// openPage shows a file in the browser, and does not wait for that to be closed.
func openPage(p process, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > mostShown {
		return fmt.Errorf("it has %s, which is much for a browser; open it yourself", size(info.Size()))
	}
	program, err := browser(p)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	cmd := outside.Browser.Command(context.Background(), program, outside.Root, withoutSecrets(p.environ), path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C here does not end it
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the browser: %w", err)
	}
	return cmd.Process.Release()
}

// browser is the path of the program that shows pages: the one that $BROWSER names first, else
// the desktop's own.
func browser(p process) (string, error) {
	named, _, _ := strings.Cut(p.variable("BROWSER"), ":")
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	switch {
	case named != "":
		return outside.Find(named, here, p.environ)
	case runtime.GOOS == "darwin":
		return "/usr/bin/open", nil
	case p.variable("DISPLAY") == "" && p.variable("WAYLAND_DISPLAY") == "":
		return "", errors.New("there is no desktop; open it where there is one, or name a program in BROWSER")
	}
	program, err := outside.Find("xdg-open", here, p.environ)
	if err != nil {
		return "", errors.New("there is no xdg-open; name a program in BROWSER")
	}
	return program, nil
}

// withoutSecrets is an environment without its variables that hold credentials.
func withoutSecrets(environ []string) []string {
	hidden := settings.Environment(environ).Secrets()
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(hidden, func(v secrets.Value) bool { return v.Name == name })
	})
}
