package main

type lockCmd struct {
	Run lockRunCmd `cmd:"" help:"Run a command under a lock on Redis, like flock(1) with a lock on a file."`
}
