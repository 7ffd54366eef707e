package main

type lockCmd struct {
	Run lockRunCmd `cmd:"" help:"Run a command under a lock on Redis, as flock(1) does under one on a file."`
}
