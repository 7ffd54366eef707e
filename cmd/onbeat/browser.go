package main

import (
	"fmt"
	"os/exec"
	"runtime"
)

// browse opens a page in the browser of this user: $BROWSER, or what the system names. It does not wait for it.
func (a *app) browse(url string) error {
	name, args := "xdg-open", []string(nil)
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	if own := a.env("BROWSER"); own != "" {
		name, args = own, nil
	}
	cmd := exec.Command(name, append(args, url)...) // it is the user's own, and may outlive this process
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open a browser: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
